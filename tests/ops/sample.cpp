#include "sample.h"

#include "base/convert.h"
#include "ir/parse.h"
#include "ir/text_reader.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

// seq(…), opt(…), map(keys, values), tuple(…), Constructor(…) and @function(…), up to the bracket.
bool parse_structure(ir::TextReader& in, SampleOperand& out) {
  using Kind = SampleOperand::Kind;
  if (in.accept("@")) {
    out.kind = Kind::closure;
    out.label = in.name();
    return true;
  }
  ir::TextReader before = in;
  std::string word = in.identifier();
  if (dtype_from_name(word)) {
    in = before;
    return false;
  }
  out.kind = word == "seq" ? Kind::sequence : word == "opt" ? Kind::optional : word == "map" ? Kind::map : Kind::record;
  if (out.kind == Kind::record && word != "tuple") out.label = word;
  return true;
}

SampleOperand parse_operand(ir::TextReader& in) {
  SampleOperand out;
  if (in.accept("_")) {
    out.absent = true;
    return out;
  }
  if (parse_structure(in, out)) {
    out.type_text = "?";
    out.has_contents = true;
    in.expect("(");
    while (!in.accept(")")) {
      if (!out.items.empty()) in.expect(",");
      out.items.push_back(parse_operand(in));
    }
    return out;
  }
  sym::Context symbols;
  ir::Type type = in.type(symbols);
  out.dtype = type.dtype;
  out.dims = ir::fixed_dims(type);
  out.type_text = to_string(type);
  if (in.peek("{") || in.peek("hex")) {
    out.has_contents = true;
    out.elements_text = ir::spell_elements(in.elements(type.dtype, out.dims));
  }
  return out;
}

}  // namespace

HostValue SampleOperand::make(std::mt19937_64& random) const {
  if (kind != Kind::tensor) {
    Sequence sequence;
    for (const SampleOperand& item : items) sequence.items.push_back(item.make(random));
    if (kind == Kind::sequence) return sequence;
    if (kind == Kind::map) return Map{sequence.items.at(0).tensor(), sequence.items.at(1).tensor()};
    if (kind == Kind::record) return Record{label, std::move(sequence.items)};
    if (kind == Kind::closure) return Closure{label, std::move(sequence.items)};
    return Optional{sequence.items.empty() ? nullptr : std::make_shared<HostValue>(sequence.items[0])};
  }
  if (has_contents) return ir::TextReader(elements_text, "sample").elements(*dtype, dims);
  size_t count = static_cast<size_t>(element_count(dims));
  if (*dtype == DType::str) {
    std::vector<std::string> values(count);
    for (auto& v : values) v = fmt::format("s{}", random() % 10);
    return narrow<std::string>(values, *dtype, dims);
  }
  // Small positive numbers are in the domain of every operator.
  std::vector<double> values(count);
  for (double& v : values) {
    double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    v = is_float(*dtype) || is_complex(*dtype) ? 0.1 + 0.8 * unit : *dtype == DType::boolean ? unit > 0.5 : 1;
  }
  return narrow<double>(values, *dtype, dims);
}

std::unique_ptr<ir::Module> ParsedSample::module() const {
  std::string parameters;
  std::string operand_names;
  for (size_t i = 0; i < operands.size(); ++i) {
    operand_names += (i ? ", " : "") + (operands[i].absent ? std::string("_") : fmt::format("%a{}", i));
    if (!operands[i].absent) parameters += fmt::format("{}%a{}: ?", parameters.empty() ? "" : ", ", i);
  }
  size_t results = expected.size();
  if (!good())
    for (const ir::Result& r : op->results) results += r.arity == ir::Arity::required;
  std::string names;
  std::string types;
  for (size_t i = 0; i < results; ++i) {
    names += fmt::format("{}%r{}", i ? ", " : "", i);
    types += i ? ", ?" : "?";
  }
  std::string text = prelude + fmt::format(" func @main({}) -> ({}) {{ {}{}{}({}) {} return {} }}", parameters, types,
                                           names, results ? " = " : "", op->name, operand_names, rest, names);
  auto module = ir::parse(text, ops::op_set(), "sample");
  ir::verify(*module);
  return module;
}

std::vector<HostValue> ParsedSample::inputs(uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<HostValue> values;
  for (const SampleOperand& operand : operands)
    if (!operand.absent) values.push_back(operand.make(random));
  return values;
}

ParsedSample parse_sample(const ir::OpDef& op, const ir::Sample& sample) {
  ParsedSample out;
  out.op = &op;
  size_t dollar = std::min(sample.call.find('$'), sample.call.size());
  out.prelude = std::string(sample.call.substr(0, dollar));
  ir::TextReader in(sample.call.substr(dollar), "sample");
  in.expect("$");
  in.expect("(");
  while (!in.accept(")")) {
    if (!out.operands.empty()) in.expect(",");
    out.operands.push_back(parse_operand(in));
  }
  out.rest = std::string(in.until(""));
  if (sample.expect.starts_with("error: ")) {
    out.error = sample.expect.substr(7);
    return out;
  }
  ir::TextReader expect(sample.expect, "sample");
  while (!expect.at_end()) {
    if (!out.expected.empty()) expect.expect(",");
    out.expected.push_back(parse_operand(expect));
  }
  return out;
}

void type_parameters(ir::Module& module, const std::vector<HostValue>& inputs) {
  auto& parameters = module.main().body.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    const Tensor& tensor = inputs[i].tensor();
    ir::SymDims dims;
    for (int64_t d : tensor.dims())
      dims.push_back(is_float(tensor.dtype()) && d > 1 ? module.symbols().fresh("d") : module.symbols().constant(d));
    parameters[i]->type = ir::Type::tensor(tensor.dtype(), std::move(dims));
  }
}

}  // namespace selkie::tests
