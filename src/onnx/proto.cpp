#include "onnx/proto.h"

#include "base/error.h"
#include "ir/module.h"

// Protozero asserts that a field has the wire type that is asked for. In a broken file it has not, and that is no bug.
#define protozero_assert(condition) \
  if (!(condition)) ::selkie::fail("a field of the file has an unexpected wire type")
#include <protozero/pbf_reader.hpp>

namespace selkie::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Nested messages recurse here, so their depth has a bound.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(depth) {
    if (++depth_ > 4 * ir::max_region_depth) fail("messages are nested too deeply");
  }
  ~Depth() { --depth_; }

 private:
  int& depth_;
};

class Reader {
 public:
  ModelProto model(pbf_reader in) {
    ModelProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          out.ir_version = in.get_int64();
          break;
        case 2:
          out.producer_name = view(in);
          break;
        case 3:
          out.producer_version = view(in);
          break;
        case 4:
          out.domain = view(in);
          break;
        case 5:
          out.model_version = in.get_int64();
          break;
        case 6:
          out.doc_string = view(in);
          break;
        case 14:
          out.metadata.push_back(key_value(in.get_message()));
          break;
        case 7: {
          GraphProto g = graph(in.get_message());
          // Parts of one message may come in pieces, which merge; a model has its graph in one.
          if (out.graph) fail("the model has two graphs");
          out.graph = std::move(g);
          break;
        }
        case 8:
          out.opsets.push_back(opset(in.get_message()));
          break;
        case 25:
          out.functions.push_back(function(in.get_message()));
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  TensorProto tensor(pbf_reader in) {
    TensorProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          integers(in, out.dims, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
          break;
        case 2:
          out.data_type = in.get_int32();
          break;
        case 4:
          fixed(in, out, out.floats, &pbf_reader::get_float);
          break;
        case 5:
          integers(in, out.integers, &pbf_reader::get_packed_int32, &pbf_reader::get_int32);
          break;
        case 6:
          out.strings.push_back(view(in));
          break;
        case 7:
          integers(in, out.integers, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
          break;
        case 8:
          out.name = view(in);
          break;
        case 9:
          out.raw = view(in);
          break;
        case 10:
          fixed(in, out, out.doubles, &pbf_reader::get_double);
          break;
        case 11:
          integers(in, out.integers, &pbf_reader::get_packed_uint64, &pbf_reader::get_uint64);
          break;
        case 13:
          out.external.push_back(key_value(in.get_message()));
          break;
        case 14:
          out.is_external = in.get_int32() == 1;
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  SequenceProto sequence(pbf_reader in) {
    Depth guard(depth_);
    SequenceProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 2:
          out.elem_type = in.get_int32();
          break;
        case 3:
          out.tensors.push_back(tensor(in.get_message()));
          break;
        case 5:
          out.sequences.push_back(sequence(in.get_message()));
          break;
        case 6:
          out.maps.push_back(map(in.get_message()));
          break;
        case 7:
          out.optionals.push_back(optional(in.get_message()));
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  OptionalProto optional(pbf_reader in) {
    Depth guard(depth_);
    OptionalProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 2:
          out.elem_type = in.get_int32();
          break;
        case 3:
          out.tensor = std::make_shared<TensorProto>(tensor(in.get_message()));
          break;
        case 5:
          out.sequence = std::make_shared<SequenceProto>(sequence(in.get_message()));
          break;
        case 6:
          out.map = std::make_shared<MapProto>(map(in.get_message()));
          break;
        case 7:
          out.optional = std::make_shared<OptionalProto>(optional(in.get_message()));
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

 private:
  static Bytes view(pbf_reader& in) {
    protozero::data_view v = in.get_view();
    return {v.data(), v.size()};
  }

  // Repeated numbers come packed or one by one.
  template <class T, class Packed, class Single>
  static void integers(pbf_reader& in, std::vector<T>& out, Packed packed, Single single) {
    if (in.wire_type() == pbf_wire_type::length_delimited)
      for (auto value : (in.*packed)()) out.push_back(static_cast<T>(value));
    else
      out.push_back(static_cast<T>((in.*single)()));
  }

  // Packed floats are already what raw_data would be.
  template <class T, class Single>
  static void fixed(pbf_reader& in, TensorProto& out, std::vector<T>& list, Single single) {
    bool packed = in.wire_type() == pbf_wire_type::length_delimited;
    if (packed && !out.raw && list.empty()) {
      out.raw = view(in);
      return;
    }
    auto append = [&](Bytes bytes) {
      if (bytes.size() % sizeof(T) != 0) fail("packed data ends inside an element");
      for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
        T value;
        std::copy_n(bytes.data() + i, sizeof(T), reinterpret_cast<char*>(&value));
        list.push_back(value);
      }
    };
    if (out.raw) append(*std::exchange(out.raw, std::nullopt));
    if (packed)
      append(view(in));
    else
      list.push_back((in.*single)());
  }

  static KeyValue key_value(pbf_reader in) {
    KeyValue out;
    while (in.next()) {
      if (in.tag() == 1)
        out.key = view(in);
      else if (in.tag() == 2)
        out.value = view(in);
      else
        in.skip();
    }
    return out;
  }

  static OpsetId opset(pbf_reader in) {
    OpsetId out;
    while (in.next()) {
      if (in.tag() == 1)
        out.domain = view(in);
      else if (in.tag() == 2)
        out.version = in.get_int64();
      else
        in.skip();
    }
    return out;
  }

  SparseTensorProto sparse_tensor(pbf_reader in) {
    SparseTensorProto out;
    while (in.next()) {
      if (in.tag() == 1)
        out.values = tensor(in.get_message());
      else if (in.tag() == 2)
        out.indices = tensor(in.get_message());
      else if (in.tag() == 3)
        integers(in, out.dims, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
      else
        in.skip();
    }
    return out;
  }

  static std::vector<Dimension> shape(pbf_reader in) {
    std::vector<Dimension> out;
    while (in.next()) {
      if (in.tag() != 1) {
        in.skip();
        continue;
      }
      Dimension dim;
      pbf_reader d = in.get_message();
      while (d.next()) {
        if (d.tag() == 1)
          dim.value = d.get_int64();
        else if (d.tag() == 2)
          dim.param = view(d);
        else
          d.skip();
      }
      out.push_back(dim);
    }
    return out;
  }

  TypeProto type(pbf_reader in) {
    Depth guard(depth_);
    TypeProto out;
    while (in.next()) {
      using Kind = TypeProto::Kind;
      Kind kind = Kind::none;
      switch (in.tag()) {
        case 1:
          kind = Kind::tensor;
          break;
        case 4:
          kind = Kind::sequence;
          break;
        case 5:
          kind = Kind::map;
          break;
        case 8:
          kind = Kind::sparse_tensor;
          break;
        case 9:
          kind = Kind::optional;
          break;
        default:
          in.skip();
          continue;
      }
      out = TypeProto{.kind = kind};
      bool dense = kind == Kind::tensor || kind == Kind::sparse_tensor;
      pbf_reader body = in.get_message();
      while (body.next()) {
        bool is_message = body.wire_type() == pbf_wire_type::length_delimited;
        if (body.tag() == 1 && !is_message)
          out.elem_type = body.get_int32();
        else if (body.tag() == 2 && dense && is_message)
          out.shape = shape(body.get_message());
        else if (body.tag() <= 2 && is_message)
          out.element = std::make_shared<TypeProto>(type(body.get_message()));
        else
          body.skip();
      }
    }
    return out;
  }

  ValueInfo value_info(pbf_reader in) {
    ValueInfo out;
    while (in.next()) {
      if (in.tag() == 1)
        out.name = view(in);
      else if (in.tag() == 2)
        out.type = type(in.get_message());
      else
        in.skip();
    }
    return out;
  }

  AttributeProto attribute(pbf_reader in) {
    using A = AttributeProto;
    AttributeProto out;
    int32_t seen = A::undefined;  // models of early versions have no type field
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          out.name = view(in);
          break;
        case 2:
          out.f = in.get_float();
          seen = A::float_;
          break;
        case 3:
          out.i = in.get_int64();
          seen = A::int_;
          break;
        case 4:
          out.s = view(in);
          seen = A::string;
          break;
        case 5:
          out.t = std::make_shared<TensorProto>(tensor(in.get_message()));
          seen = A::tensor;
          break;
        case 6:
          out.g = std::make_shared<GraphProto>(graph(in.get_message()));
          seen = A::graph;
          break;
        case 7:
          integers(in, out.float_list, &pbf_reader::get_packed_float, &pbf_reader::get_float);
          seen = A::floats;
          break;
        case 8:
          integers(in, out.int_list, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
          seen = A::ints;
          break;
        case 9:
          out.string_list.push_back(view(in));
          seen = A::strings;
          break;
        case 14:
          out.tp = std::make_shared<TypeProto>(type(in.get_message()));
          seen = A::type_proto;
          break;
        case 20:
          out.type = in.get_int32();
          break;
        case 21:
          out.ref_name = view(in);
          break;
        case 22:
          out.sparse = std::make_shared<SparseTensorProto>(sparse_tensor(in.get_message()));
          seen = A::sparse_tensor;
          break;
        default:
          in.skip();
      }
    }
    if (out.type == A::undefined) out.type = seen;
    return out;
  }

  NodeProto node(pbf_reader in) {
    NodeProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          out.inputs.push_back(view(in));
          break;
        case 2:
          out.outputs.push_back(view(in));
          break;
        case 3:
          out.name = view(in);
          break;
        case 4:
          out.op_type = view(in);
          break;
        case 5:
          out.attributes.push_back(attribute(in.get_message()));
          break;
        case 7:
          out.domain = view(in);
          break;
        case 8:
          out.overload = view(in);
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  GraphProto graph(pbf_reader in) {
    Depth guard(depth_);
    GraphProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          out.nodes.push_back(node(in.get_message()));
          break;
        case 2:
          out.name = view(in);
          break;
        case 5:
          out.initializers.push_back(tensor(in.get_message()));
          break;
        case 10:
          out.doc_string = view(in);
          break;
        case 11:
          out.inputs.push_back(value_info(in.get_message()));
          break;
        case 12:
          out.outputs.push_back(value_info(in.get_message()));
          break;
        case 13:
          out.value_infos.push_back(value_info(in.get_message()));
          break;
        case 15:
          out.sparse_initializers.push_back(sparse_tensor(in.get_message()));
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  FunctionProto function(pbf_reader in) {
    FunctionProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          out.name = view(in);
          break;
        case 4:
          out.inputs.push_back(view(in));
          break;
        case 5:
          out.outputs.push_back(view(in));
          break;
        case 6:
          out.attribute_names.push_back(view(in));
          break;
        case 7:
          out.nodes.push_back(node(in.get_message()));
          break;
        case 9:
          out.opsets.push_back(opset(in.get_message()));
          break;
        case 10:
          out.domain = view(in);
          break;
        case 11:
          out.attribute_defaults.push_back(attribute(in.get_message()));
          break;
        case 12:
          out.value_infos.push_back(value_info(in.get_message()));
          break;
        case 13:
          out.overload = view(in);
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  MapProto map(pbf_reader in) {
    MapProto out;
    while (in.next()) {
      switch (in.tag()) {
        case 2:
          out.key_type = in.get_int32();
          break;
        case 3:
          integers(in, out.keys, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
          break;
        case 4:
          out.string_keys.push_back(view(in));
          break;
        case 5:
          out.values = std::make_shared<SequenceProto>(sequence(in.get_message()));
          break;
        default:
          in.skip();
      }
    }
    return out;
  }

  int depth_ = 0;
};

template <class F>
auto read(Bytes bytes, std::string_view what, F&& f) {
  try {
    return f(Reader(), pbf_reader(bytes.data(), bytes.size()));
  } catch (const protozero::exception& error) {
    fail("this is not {}: {}", what, error.what());
  }
}

}  // namespace

ModelProto read_model(Bytes bytes) {
  return read(bytes, "an ONNX model", [](Reader reader, pbf_reader in) { return reader.model(in); });
}
TensorProto read_tensor(Bytes bytes) {
  return read(bytes, "an ONNX tensor", [](Reader reader, pbf_reader in) { return reader.tensor(in); });
}
SequenceProto read_sequence(Bytes bytes) {
  return read(bytes, "an ONNX sequence", [](Reader reader, pbf_reader in) { return reader.sequence(in); });
}
OptionalProto read_optional(Bytes bytes) {
  return read(bytes, "an ONNX optional", [](Reader reader, pbf_reader in) { return reader.optional(in); });
}

}  // namespace selkie::onnx
