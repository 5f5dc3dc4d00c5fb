#include "api/checked_run.h"

#include "api/failure.h"
#include "interp/bind.h"

namespace selkie::api {

DeclaredInputs::DeclaredInputs(std::shared_ptr<const ir::Module> declared) : declared_(std::move(declared)) {
  const ir::Function& main = declared_->main();
  for (size_t input = 0; input < main.body.parameters.size(); ++input) {
    const ir::Type& type = main.body.parameters[input]->type;
    has_structures_ = has_structures_ || !type.is_tensor();
    for (size_t axis = 0; type.dims && axis < type.dims->size(); ++axis)
      if (sym::Expr dim = (*type.dims)[axis]; dim.is_symbol())
        places_.push_back({.symbol = std::string(dim.symbol_name()), .input = input, .axis = axis});
  }
  has_facts_ = !main.facts.to_strings().empty();
}

bool DeclaredInputs::satisfy_facts(std::span<const HostValue> inputs) const {
  size_t checked = 0;
  auto size_of = [&](std::string_view symbol) -> std::optional<int64_t> {
    for (const Place& place : places_) {
      if (place.symbol != symbol || !inputs[place.input].is_tensor()) continue;
      const Dims& dims = inputs[place.input].tensor().dims();
      if (place.axis < dims.size()) return dims[place.axis];
    }
    return std::nullopt;
  };
  return !declared_->main().facts.violated(size_of, checked);
}

void DeclaredInputs::check(std::span<const HostValue> inputs) const {
  std::lock_guard lock(checking_);
  in_phase(Phase::input, [&] { interp::bind_inputs(declared_->main(), inputs); });
}

void DeclaredInputs::check_before_run(std::span<const HostValue> inputs) const {
  if (has_structures_ || (has_facts_ && !satisfy_facts(inputs))) check(inputs);
}

std::vector<HostValue> run(runtime::Context& context, const DeclaredInputs& declared,
                           std::span<const HostValue> inputs) {
  try {
    return context.run(inputs);
  } catch (const LimitError&) {
    throw;
  } catch (const Error& error) {
    declared.check(inputs);
    throw Failure(Phase::run, error.what());
  }
}

}  // namespace selkie::api
