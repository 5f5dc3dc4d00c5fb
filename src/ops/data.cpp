// Data types and closures: tuples, values of the module's data types, and functions with some arguments given.
#include <algorithm>

#include "ops/support/blank.h"
#include "ops/support/containers.h"

namespace selkie::ops {
namespace {

OpDef base() {
  OpDef op = blank_record();
  op.operands = {{"value", any_tensor, required, Container::any}};
  op.results = {{"result", any_tensor, required, Container::any}};
  op.backward = absent("what data values and closures hold is not required, only found");
  op.value = absent("contents of data values and closures are not followed");
  op.lower = absent("data values and closures are handled by the virtual machine");
  return op;
}

std::vector<HostValue> operands_from(const EvalContext& e, size_t first) {
  std::vector<HostValue> out;
  for (size_t i = first; i < e.operand_count(); ++i) out.push_back(e.operand(i));
  return out;
}

void set_all(EvalContext& e, std::vector<HostValue> results) {
  if (results.size() < e.result_count())
    fail("{} results are needed, but there are {}", e.result_count(), results.size());
  for (size_t i = 0; i < results.size(); ++i) e.set(i, std::move(results[i]));
}

const ir::DataConstructor* find_constructor(const ir::DataType& type, std::string_view name) {
  auto at =
      std::find_if(type.constructors.begin(), type.constructors.end(), [&](const auto& c) { return c.name == name; });
  return at == type.constructors.end() ? nullptr : &*at;
}

bool tensor_fits(const Tensor& tensor, const Type& type) {
  if (tensor.dtype() != type.dtype) return false;
  if (!type.dims) return true;
  if (type.dims->size() != tensor.dims().size()) return false;
  for (size_t i = 0; i < type.dims->size(); ++i)
    if ((*type.dims)[i].constant().value_or(tensor.dims()[i]) != tensor.dims()[i]) return false;
  return true;
}

// One level deep: what is inside a data value was held against its type when that value was made.
bool fits(const HostValue& value, const Type& type, const ir::Module& module) {
  switch (type.kind) {
    case Type::Kind::unknown:
      return true;
    case Type::Kind::tensor:
      return value.is_tensor() && tensor_fits(value.tensor(), type);
    case Type::Kind::seq:
      return value.is_sequence();
    case Type::Kind::opt:
      return value.is_optional();
    case Type::Kind::map:
      return value.is_map();
    case Type::Kind::function:
      return value.is_closure();
    case Type::Kind::tuple:
      return value.is_record() && value.record().constructor.empty() &&
             value.record().fields.size() == type.parts.size();
    case Type::Kind::data: {
      const ir::DataType* data = module.find_data_type(type.name);
      return data != nullptr && value.is_record() && find_constructor(*data, value.record().constructor) != nullptr;
    }
  }
  return false;
}

OpDef make_tuple() {
  OpDef op = base();
  op.name = "tuple";
  op.doc = "a tuple of the operands";
  op.operands = {{"fields", any_tensor, variadic, Container::any}};
  op.forward = [](const ForwardContext& f) {
    std::vector<Type> parts;
    for (size_t i = 0; i < f.operand_count(); ++i) parts.push_back(f.type(i));
    return std::vector<Type>{Type::tuple(std::move(parts))};
  };
  op.eval = [](EvalContext& e) { e.set(0, Record{"", operands_from(e, 0)}); };
  op.samples = {
      {"$(f32[2], i64[0])", "tuple(f32[2], i64[0])"}, {"$()", "tuple()"}, {"$(tuple(f32[1]))", "tuple(tuple(f32[1]))"}};
  return op;
}

OpDef tuple_get() {
  OpDef op = base();
  op.name = "tuple_get";
  op.doc = "one field of a tuple";
  op.attrs = {required_attr("index", AttrKind::integer)};
  op.forward = [](const ForwardContext& f) {
    auto index = static_cast<size_t>(f.attr_int("index"));
    bool known = f.type(0).kind == Type::Kind::tuple && index < f.type(0).parts.size();
    return std::vector<Type>{known ? f.type(0).parts[index] : Type{}};
  };
  op.eval = [](EvalContext& e) {
    const Record& record = e.operand(0).record();
    int64_t index = e.attr_int("index");
    if (!record.constructor.empty()) fail("a tuple is needed, but the value is {}", e.operand(0).describe());
    if (index < 0 || index >= static_cast<int64_t>(record.fields.size()))
      fail("index {} is outside {}", index, e.operand(0).describe());
    e.set(0, record.fields[static_cast<size_t>(index)]);
  };
  op.samples = {{"$(tuple(f32[2], i64[1]{7})) {index = 1}", "i64[1]{7}"},
                {"$(tuple(f32[2])) {index = 1}", "error: index 1 is outside a tuple of 1"},
                {"$(tuple(f32[2])) {index = -1}", "error: index -1 is outside"},
                {"$(f32[2]) {index = 0}", "error: a tuple or data value is needed"},
                {"$(Leaf(f32[2])) {index = 0}", "error: a tuple is needed"}};
  return op;
}

void eval_construct(EvalContext& e) {
  const Type& type = e.attr<Type>("type");
  const std::string& name = e.attr_string("constructor");
  const ir::DataType* data = type.kind == Type::Kind::data ? e.services().module().find_data_type(type.name) : nullptr;
  if (data == nullptr) fail("{} is not a data type", to_string(type));
  const ir::DataConstructor* constructor = find_constructor(*data, name);
  if (constructor == nullptr) fail("data type {} has no constructor {}", data->name, name);
  if (constructor->fields.size() != e.operand_count())
    fail("constructor {} takes {} fields, but {} are given", name, constructor->fields.size(), e.operand_count());
  for (size_t i = 0; i < e.operand_count(); ++i)
    if (!fits(e.operand(i), constructor->fields[i], e.services().module()))
      fail("field {} of {} must be {}, but is {}", i, name, to_string(constructor->fields[i]), e.operand(i).describe());
  e.set(0, Record{name, operands_from(e, 0)});
}

OpDef construct() {
  OpDef op = base();
  op.name = "construct";
  op.doc = "a value of a data type of the module";
  op.operands = {{"fields", any_tensor, variadic, Container::any}};
  op.attrs = {required_attr("type", AttrKind::type), required_attr("constructor", AttrKind::text)};
  op.forward = [](const ForwardContext& f) { return std::vector<Type>{std::get<Type>(*f.find_attr("type"))}; };
  op.eval = eval_construct;
  op.samples = {
      {"data T { Leaf(f32[N, 2]), Node(T, T) } $(f32[0, 2]) {type = T, constructor = \"Leaf\"}", "Leaf(f32[0, 2])"},
      {"data T { Leaf(f32[2]), Node(T, T) } $(Leaf(f32[2]), Leaf(f32[2])) {type = T, constructor = \"Node\"}",
       "Node(Leaf(f32[2]), Leaf(f32[2]))"},
      {"data B { None(), Many(seq<f32[*]>, opt<f32[*]>, (f32[1], f32[1])) } "
       "$(seq(), opt(), tuple(f32[1], f32[1])) {type = B, constructor = \"Many\"}",
       "Many(seq(), opt(), tuple(f32[1], f32[1]))"},
      {"data T { Leaf(f32[2]) } $(f32[3]) {type = T, constructor = \"Leaf\"}",
       "error: field 0 of Leaf must be f32[2], but is f32[3]"},
      {"data T { Leaf(f32[2]) } $() {type = T, constructor = \"Leaf\"}", "error: takes 1 fields, but 0 are given"},
      {"data T { Leaf(f32[2]) } $(f32[2]) {type = T, constructor = \"Node\"}",
       "error: data type T has no constructor Node"},
      {"$(f32[2]) {type = f32[2], constructor = \"Node\"}", "error: f32[2] is not a data type"}};
  return op;
}

void eval_match(EvalContext& e) {
  const Record& record = e.operand(0).record();
  const auto& handled = e.attr<std::vector<std::string>>("constructors");
  if (handled.size() != e.region_count())
    fail("{} constructors are named for {} cases", handled.size(), e.region_count());
  auto at = std::find(handled.begin(), handled.end(), record.constructor);
  if (record.constructor.empty() || at == handled.end()) fail("no case fits {}", e.operand(0).describe());
  auto chosen = static_cast<size_t>(at - handled.begin());
  size_t parameters = e.region(chosen).parameters.size();
  if (parameters != record.fields.size())
    fail("the case of {} takes {} fields, but the value has {}", record.constructor, parameters, record.fields.size());
  set_all(e, e.run_region(chosen, record.fields));
}

// What is known of result r outside the case that gave it. Dims without a meaning there become symbols.
Type outside(const ForwardContext& c, size_t r, Type type) {
  if (!type.dims) return visible_type(c, std::move(type));
  for (size_t axis = 0; axis < type.dims->size(); ++axis)
    if (sym::Expr& dim = (*type.dims)[axis]; !c.services().visible(dim)) dim = c.unknown(r, axis);
  return type;
}

// The same for two cases.
Type either(const ForwardContext& c, size_t r, const Type& a, const Type& b) {
  if (!a.dims || !b.dims || a.dtype != b.dtype || a.dims->size() != b.dims->size()) return common_type(c, a, b);
  Type out = a;
  for (size_t axis = 0; axis < a.dims->size(); ++axis)
    if (!c.proves_equal((*a.dims)[axis], (*b.dims)[axis])) (*out.dims)[axis] = c.unknown(r, axis);
  return out;
}

// What holds whichever case runs. Fields are known by their declared types only, and nobody has checked their dims.
std::vector<Type> forward_match(const ForwardContext& c) {
  std::optional<std::vector<Type>> types;
  std::vector<Type> first;
  const auto& cases = c.node()->regions;
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<ir::Known> fields;
    for (const auto& field : cases[i]->parameters)
      fields.push_back({.type = without_dims(field->type), .contents = {}});
    std::optional<std::vector<ir::Known>> yields =
        c.services().run_region(i, std::move(fields), false, [](sym::Facts&) {});
    if (!yields) continue;
    for (size_t r = 0; r < c.result_count(); ++r) {
      Type found = outside(c, r, (*yields)[r].type);
      if (!types)
        first.push_back(std::move(found));
      else
        (*types)[r] = either(c, r, (*types)[r], found);
    }
    if (!types) types = std::move(first);
  }
  return types.value_or(std::vector<Type>(c.result_count()));
}

OpDef match() {
  OpDef op = base();
  op.name = "match";
  op.doc = "runs the region of the constructor that made the value, with the value's fields as its parameters";
  op.results = {{"results", any_tensor, variadic, Container::any}};
  op.attrs = {required_attr("constructors", AttrKind::texts)};
  op.regions = {{.name = "case", .variadic = true}};
  op.dynamism = edo({"value"});
  op.forward = forward_match;
  op.backward = absent("what one case needs does not hold for the others");
  op.eval = eval_match;
  op.samples = {
      {"$(Leaf(f32[2]{1, 2})) {constructors = [\"Leaf\", \"Pair\"]} case(%a: f32[2]) { yield %a } "
       "case(%b: f32[2], %c: f32[2]) { %d = add(%b, %c) yield %d }",
       "f32[2]{1, 2}"},
      {"$(Pair(f32[2]{1, 2}, f32[2]{3, 4})) {constructors = [\"Leaf\", \"Pair\"]} case(%a: f32[2]) { yield %a } "
       "case(%b: f32[2], %c: f32[2]) { %d = add(%b, %c) yield %d }",
       "f32[2]{4, 6}"},
      {"$(Leaf(f32[2])) {constructors = [\"Pair\"]} case(%a: f32[2], %b: f32[2]) { yield }",
       "error: no case fits a value Leaf"},
      {"$(Leaf(f32[2])) {constructors = [\"Leaf\"]} case(%a: f32[2], %b: f32[2]) { yield }",
       "error: takes 2 fields, but the value has 1"},
      {"$(Leaf(f32[2])) {constructors = []} case(%a: f32[2]) { yield }", "error: 0 constructors are named for 1 cases"},
      {"$(f32[2]) {constructors = [\"Leaf\"]} case(%a: f32[2]) { yield }", "error: a tuple or data value is needed"}};
  return op;
}

OpDef closure() {
  OpDef op = base();
  op.name = "closure";
  op.doc = "a function of the module with its first arguments given";
  op.operands = {{"captured", any_tensor, variadic, Container::any}};
  op.attrs = {required_attr("callee", AttrKind::function)};
  op.forward = absent("the types of functions are the module's, and closures have no shape");
  op.eval = [](EvalContext& e) {
    const std::string& callee = e.attr<ir::FunctionRef>("callee").name;
    const ir::Function* function = e.services().module().find_function(callee);
    if (function == nullptr) fail("there is no function @{}", callee);
    if (e.operand_count() > function->body.parameters.size())
      fail("function @{} takes {} arguments, but {} are captured", callee, function->body.parameters.size(),
           e.operand_count());
    e.set(0, Closure{callee, operands_from(e, 0)});
  };
  op.samples = {{"func @f(%a: f32[2], %b: f32[2]) -> (f32[2]) { return %b } $(f32[2]) {callee = @f}", "@f(f32[2])"},
                {"func @f() -> () { return } $() {callee = @f}", "@f()"},
                {"func @f() -> () { return } $(f32[1]) {callee = @f}", "error: takes 0 arguments, but 1 are captured"}};
  return op;
}

OpDef apply() {
  OpDef op = base();
  op.name = "apply";
  op.doc = "runs a closure on what it captured and the remaining arguments";
  op.operands = {{"function", any_tensor, required, Container::any},
                 {"arguments", any_tensor, variadic, Container::any}};
  op.results = {{"results", any_tensor, variadic, Container::any}};
  op.dynamism = edo({"function"});
  op.forward = absent("which function a closure calls, and with which captured values, only the run tells");
  op.eval = [](EvalContext& e) {
    const Closure& closure = e.operand(0).closure();
    std::vector<HostValue> arguments = closure.captured;
    for (HostValue& argument : operands_from(e, 1)) arguments.push_back(std::move(argument));
    set_all(e, e.services().call(closure.function, std::move(arguments)));
  };
  op.samples = {
      {"func @f(%a: f32[2], %b: f32[2]) -> (f32[2]) { %c = sub(%a, %b) return %c } $(@f(f32[2]{5, 6}), f32[2]{1, 2})",
       "f32[2]{4, 4}"},
      {"func @f(%a: f32[2]) -> (f32[2]) { return %a } $(@f(), f32[2]{1, 2})", "f32[2]{1, 2}"},
      {"func @f(%a: f32[2]) -> (f32[2]) { return %a } $(@f())", "error: takes 1 arguments, but 0 are given"},
      {"$(@g())", "error: there is no function @g"},
      {"$(f32[2])", "error: a closure is needed"}};
  return op;
}

}  // namespace

std::vector<OpDef> data_family() { return {apply(), closure(), construct(), make_tuple(), match(), tuple_get()}; }

}  // namespace selkie::ops
