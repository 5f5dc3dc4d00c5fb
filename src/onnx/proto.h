// ONNX's protobuf messages as views into the bytes of the model: strings and tensor data are not copied.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace selkie::onnx {

using Bytes = std::string_view;

struct KeyValue {
  Bytes key, value;
};

struct TensorProto {
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  Bytes name;
  std::optional<Bytes> raw;       // raw_data, or packed float_data / double_data: the elements in little endian
  std::vector<int64_t> integers;  // int32_data, int64_data or uint64_data, decoded
  std::vector<float> floats;      // float_data that is not in one piece
  std::vector<double> doubles;    // the same for double_data
  std::vector<Bytes> strings;
  std::vector<KeyValue> external;
  bool is_external = false;
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct Dimension {
  std::optional<int64_t> value;
  Bytes param;
};

struct TypeProto {
  enum class Kind : uint8_t { none, tensor, sequence, map, optional, sparse_tensor };
  Kind kind = Kind::none;
  int64_t elem_type = 0;  // of a tensor; key type of a map
  std::optional<std::vector<Dimension>> shape;
  std::shared_ptr<TypeProto> element;
};

struct ValueInfo {
  Bytes name;
  std::optional<TypeProto> type;
};

struct GraphProto;

struct AttributeProto {
  enum Type : int32_t {
    undefined,
    float_,
    int_,
    string,
    tensor,
    graph,
    floats,
    ints,
    strings,
    tensors,
    graphs,
    sparse_tensor,
    sparse_tensors,
    type_proto,
    type_protos
  };
  Bytes name, ref_name;
  int32_t type = undefined;
  float f = 0;
  int64_t i = 0;
  Bytes s;
  std::shared_ptr<TensorProto> t;
  std::shared_ptr<SparseTensorProto> sparse;
  std::shared_ptr<GraphProto> g;
  std::shared_ptr<TypeProto> tp;
  std::vector<float> float_list;
  std::vector<int64_t> int_list;
  std::vector<Bytes> string_list;
};

struct NodeProto {
  std::vector<Bytes> inputs, outputs;
  Bytes name, op_type, domain, overload;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  Bytes name, doc_string;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs, value_infos;
};

struct OpsetId {
  Bytes domain;
  int64_t version = 0;
};

struct FunctionProto {
  Bytes name, domain, overload;
  std::vector<Bytes> inputs, outputs, attribute_names;
  std::vector<AttributeProto> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
  std::vector<ValueInfo> value_infos;
};

struct ModelProto {
  int64_t ir_version = 0;
  Bytes producer_name, producer_version, domain, doc_string;
  int64_t model_version = 0;
  std::vector<KeyValue> metadata;
  std::vector<OpsetId> opsets;
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

// Test data: onnx-data.proto.
struct SequenceProto;
struct OptionalProto;
struct MapProto {
  int64_t key_type = 0;
  std::vector<int64_t> keys;
  std::vector<Bytes> string_keys;
  std::shared_ptr<SequenceProto> values;
};
struct SequenceProto {
  int64_t elem_type = 0;
  std::vector<TensorProto> tensors;
  std::vector<SequenceProto> sequences;
  std::vector<MapProto> maps;
  std::vector<OptionalProto> optionals;
};
struct OptionalProto {
  int64_t elem_type = 0;
  std::shared_ptr<TensorProto> tensor;
  std::shared_ptr<SequenceProto> sequence;
  std::shared_ptr<MapProto> map;
  std::shared_ptr<OptionalProto> optional;
};

// Each throws Error if the bytes are not such a message. Views stay valid as long as the bytes do.
ModelProto read_model(Bytes bytes);
TensorProto read_tensor(Bytes bytes);
SequenceProto read_sequence(Bytes bytes);
OptionalProto read_optional(Bytes bytes);

}  // namespace selkie::onnx
