#include "interp/bind.h"

namespace selkie::interp {
namespace {

class Binder {
 public:
  explicit Binder(const ir::Function& function) : function_(function) {}

  void bind(const std::string& name, const ir::Type& type, const HostValue& value) {
    using Kind = ir::Type::Kind;
    auto wrong_kind = [&] { fail("input '{}' must be {}, but is {}", name, to_string(type), value.describe()); };
    switch (type.kind) {
      case Kind::tensor:
        if (!value.is_tensor()) wrong_kind();
        bind_tensor(name, type, value.tensor());
        return;
      case Kind::seq:
        if (!value.is_sequence()) wrong_kind();
        for (const HostValue& item : value.sequence()) bind(name, element_of(type.parts[0]), item);
        return;
      case Kind::opt:
        if (!value.is_optional()) {
          bind(name, type.parts[0], value);  // a value stands for an optional that holds it
          return;
        }
        if (value.optional().value) bind(name, type.parts[0], *value.optional().value);
        return;
      case Kind::map:
        if (!value.is_map()) wrong_kind();
        return;
      default:
        return;
    }
  }

  // What the `where` clause says of the dims, now that they are numbers.
  void check_facts() {
    sym::Facts facts = function_.facts;
    for (const Binding& binding : bound_) {
      try {
        facts.add_equal(binding.symbol, binding.symbol.context().constant(binding.value), binding.source);
      } catch (const Error& error) {
        fail("the inputs do not satisfy the model's constraints: {}", error.message());
      }
    }
  }

  std::vector<Binding> take() { return std::move(bound_); }

 private:
  // Items of a sequence may differ in shape, so their symbols bind nothing.
  static ir::Type element_of(const ir::Type& type) { return type.is_tensor() ? ir::Type::tensor(type.dtype) : type; }

  void bind_tensor(const std::string& name, const ir::Type& type, const Tensor& tensor) {
    if (tensor.dtype() != type.dtype)
      fail("input '{}' must be of type {}, but is of {}", name, selkie::name(type.dtype), selkie::name(tensor.dtype()));
    if (!type.dims) return;
    if (type.dims->size() != tensor.dims().size())
      fail("input '{}' must have rank {} ({}), but has shape {}", name, type.dims->size(), to_string(type),
           to_string(tensor.dims()));
    for (size_t i = 0; i < type.dims->size(); ++i) bind_dim(name, i, (*type.dims)[i], tensor.dims()[i]);
  }

  void bind_dim(const std::string& name, size_t axis, sym::Expr declared, int64_t actual) {
    if (auto value = declared.constant()) {
      if (*value != actual) fail("input '{}' dim {} is {}, but must be {}", name, axis, actual, *value);
      return;
    }
    if (declared.is_symbol()) {
      for (const Binding& binding : bound_) {
        if (binding.symbol != declared) continue;
        if (binding.value != actual)
          fail("input '{}' dim {} is {}, but must equal {} ({}): both are {}", name, axis, actual, binding.source,
               binding.value, sym::to_string(declared));
        return;
      }
      bound_.push_back({declared, actual, fmt::format("dim {} of '{}'", axis, name)});
      return;
    }
    auto lookup = [&](std::string_view wanted) -> std::optional<int64_t> {
      for (const Binding& binding : bound_)
        if (binding.symbol.symbol_name() == wanted) return binding.value;
      return std::nullopt;
    };
    std::optional<int64_t> value = sym::evaluate(declared, lookup);
    if (value && *value != actual)
      fail("input '{}' dim {} is {}, but must be {} = {}", name, axis, actual, sym::to_string(declared), *value);
  }

  const ir::Function& function_;
  std::vector<Binding> bound_;
};

}  // namespace

std::vector<Binding> bind_inputs(const ir::Function& function, std::span<const HostValue> inputs) {
  const auto& parameters = function.body.parameters;
  if (inputs.size() != parameters.size())
    fail("the model takes {} inputs, but {} are given", parameters.size(), inputs.size());
  Binder binder(function);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_absent()) fail("input '{}' ({}) is missing", parameters[i]->name, to_string(parameters[i]->type));
    binder.bind(parameters[i]->name, parameters[i]->type, inputs[i]);
  }
  binder.check_facts();
  return binder.take();
}

}  // namespace selkie::interp
