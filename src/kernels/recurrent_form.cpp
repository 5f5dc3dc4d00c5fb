// Which recurrent operators the kernels serve.
#include <algorithm>

#include "kernels/recurrent.h"

namespace selkie::kernels {
namespace {

bool same_name(std::string_view a, std::string_view lower) {
  auto same = [](char x, char y) { return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y; };
  return a.size() == lower.size() && std::equal(a.begin(), a.end(), lower.begin(), same);
}

std::optional<Function> function_of(std::string_view name) {
  if (same_name(name, "sigmoid")) return Function::sigmoid;
  if (same_name(name, "tanh")) return Function::tanh;
  if (same_name(name, "relu")) return Function::relu;
  return std::nullopt;
}

RecurrentFunctions defaults_of(RecurrentKind kind) {
  if (kind == RecurrentKind::rnn) return {Function::tanh, Function::tanh, Function::tanh};
  return {Function::sigmoid, Function::tanh, Function::tanh};
}

size_t functions_of(RecurrentKind kind) { return kind == RecurrentKind::lstm ? 3 : kind == RecurrentKind::gru ? 2 : 1; }

}  // namespace

std::optional<std::array<RecurrentFunctions, 2>> serves(const RecurrentForm& form, std::string_view* why_not) {
  auto no = [&](std::string_view reason) {
    if (why_not) *why_not = reason;
    return std::nullopt;
  };
  if (form.clipped) return no("there is no kernel for clipped gates");
  if (form.input_forget) return no("there is no kernel for coupled input and forget gates");
  std::array<RecurrentFunctions, 2> functions = {defaults_of(form.kind), defaults_of(form.kind)};
  if (form.activations.empty()) return functions;
  size_t each = functions_of(form.kind);
  if (form.activations.size() < each * static_cast<size_t>(form.directions))
    return no("there are fewer activations than gates");
  for (size_t i = 0; i < each * static_cast<size_t>(form.directions); ++i) {
    std::optional<Function> function = function_of(form.activations[i]);
    if (!function) return no("only the activations Sigmoid, Tanh and Relu have kernels");
    functions[i / each][i % each] = *function;
  }
  return functions;
}

}  // namespace selkie::kernels
