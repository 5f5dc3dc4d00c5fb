#include "driver/dims.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace selkie::driver {
namespace {

// With "=" as users write it in the place of "==".
std::string fact(std::string text) {
  size_t equals = text.find('=');
  bool plain = equals != std::string::npos && equals > 0 &&
               text.find_first_of("<>%=", equals + 1) == std::string::npos &&
               std::string_view("<>!=").find(text[equals - 1]) == std::string_view::npos;
  if (plain) text.insert(equals, "=");
  return text;
}

// A misspelt size would be required of nothing.
void check_names(const std::string& fact, const std::vector<std::string>& known, std::string_view option) {
  sym::Context context;
  sym::Facts alone(context);
  alone.add(fact, std::string(option));
  size_t checked = 0;
  static_cast<void>(alone.violated(
      [&](std::string_view name) -> std::optional<int64_t> {
        if (std::ranges::find(known, name) != known.end()) return 1;
        fail("{} '{}': no input has a size '{}'; there are: {}", option, fact, name, fmt::join(known, ", "));
      },
      checked));
}

}  // namespace

std::vector<std::string> names_of_sizes(const ir::Function& main) {
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : main.body.parameters)
    if (parameter->type.dims)
      for (sym::Expr dim : *parameter->type.dims) sym::collect_symbols(dim, symbols);
  std::vector<std::string> names;
  for (sym::Expr symbol : symbols) names.emplace_back(symbol.symbol_name());
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

void require_dims(ir::Function& main, const std::vector<std::string>& dims, std::string_view option) {
  if (dims.empty()) return;
  std::vector<std::string> known = names_of_sizes(main);
  for (const std::string& text : dims) {
    check_names(fact(text), known, option);
    main.facts.add(fact(text), std::string(option));
  }
}

}  // namespace selkie::driver
