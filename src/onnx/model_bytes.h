// ONNX messages for tests, written field by field with the numbers of onnx.proto.
#pragma once

#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace selkie::onnx::testing {

struct Message {
  std::string bytes;

  Message& text(uint32_t field, std::string_view value) {
    protozero::pbf_writer(bytes).add_bytes(field, value.data(), value.size());
    return *this;
  }
  Message& texts(uint32_t field, const std::vector<std::string>& values) {
    for (const std::string& value : values) text(field, value);
    return *this;
  }
  Message& number(uint32_t field, int64_t value) {
    protozero::pbf_writer(bytes).add_int64(field, value);
    return *this;
  }
  Message& numbers(uint32_t field, const std::vector<int64_t>& values) {
    for (int64_t value : values) number(field, value);
    return *this;
  }
  Message& real(uint32_t field, float value) {
    protozero::pbf_writer(bytes).add_float(field, value);
    return *this;
  }
  Message& packed_floats(uint32_t field, const std::vector<float>& values) {
    protozero::pbf_writer(bytes).add_packed_float(field, values.begin(), values.end());
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes); }
  Message& messages(uint32_t field, const std::vector<Message>& values) {
    for (const Message& value : values) message(field, value);
    return *this;
  }
};

inline constexpr int64_t float_type = 1, int64_type = 7, bool_type = 9;

// A dim is a number, or a name in `dim_param`.
struct Dim {
  Dim(int value) : bytes(Message().number(1, value)) {}
  Dim(const char* name) : bytes(Message().text(2, name)) {}
  Message bytes;
};

inline Message value_info(std::string_view name, int64_t elem_type, const std::vector<Dim>& dims) {
  Message shape;
  for (const Dim& dim : dims) shape.message(1, dim.bytes);
  Message tensor = Message().number(1, elem_type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

inline Message tensor(std::string_view name, int64_t elem_type, const std::vector<int64_t>& dims) {
  return Message().numbers(1, dims).number(2, elem_type).text(8, name);
}
inline Message raw_floats(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return tensor(name, float_type, dims).text(9, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
}
inline Message int64s(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return tensor(name, int64_type, dims).numbers(7, values);
}
inline Message external(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<std::pair<std::string, std::string>>& entries) {
  Message out = tensor(name, float_type, dims).number(14, 1);
  for (const auto& [key, value] : entries) out.message(13, Message().text(1, key).text(2, value));
  return out;
}

inline Message int_attribute(std::string_view name, int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message float_attribute(std::string_view name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
inline Message ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  return Message().text(1, name).numbers(8, values).number(20, 7);
}
inline Message graph_attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).number(20, 5);
}
inline Message attribute_reference(std::string_view name, std::string_view outer, int64_t type) {
  return Message().text(1, name).text(21, outer).number(20, type);
}

inline Message node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {},
                    std::string_view domain = "") {
  return Message().texts(1, inputs).texts(2, outputs).text(4, op).messages(5, attributes).text(7, domain);
}

struct Graph {
  std::vector<Message> nodes, inputs, outputs, initializers = {}, sparse = {};

  Message message() const {
    return Message()
        .messages(1, nodes)
        .text(2, "g")
        .messages(5, initializers)
        .messages(11, inputs)
        .messages(12, outputs)
        .messages(15, sparse);
  }
};

inline Message opset(int64_t version, std::string_view domain = "") {
  return Message().text(1, domain).number(2, version);
}

struct Model {
  Graph graph;
  int64_t ir_version = 10;
  std::vector<Message> opsets = {opset(21)};
  std::vector<Message> functions = {};

  std::string bytes() const {
    return Message()
        .number(1, ir_version)
        .message(7, graph.message())
        .messages(8, opsets)
        .messages(25, functions)
        .bytes;
  }
};

}  // namespace selkie::onnx::testing
