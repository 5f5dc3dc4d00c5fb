#include "dims_option.h"

#include <fmt/ranges.h>

#include <set>

namespace selkie::cli {
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

// The sizes that inputs have by name.
std::set<std::string, std::less<>> names_of_sizes(const ir::Function& main) {
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : main.body.parameters)
    if (parameter->type.dims)
      for (sym::Expr dim : *parameter->type.dims) sym::collect_symbols(dim, symbols);
  std::set<std::string, std::less<>> names;
  for (sym::Expr symbol : symbols) names.emplace(symbol.symbol_name());
  return names;
}

// A misspelt size would be required of nothing.
void check_names(const std::string& fact, const std::set<std::string, std::less<>>& known) {
  sym::Context context;
  sym::Facts alone(context);
  alone.add(fact, "--dims");
  size_t checked = 0;
  static_cast<void>(alone.violated(
      [&](std::string_view name) -> std::optional<int64_t> {
        if (known.contains(name)) return 1;
        fail("--dims '{}': no input has a size '{}'; there are: {}", fact, name, fmt::join(known, ", "));
      },
      checked));
}

}  // namespace

void add_dims_option(CLI::App& command, std::vector<std::string>& dims) {
  command.add_option("--dims", dims, "A fact about dims: 'N=4', 'S in 1..512', 'H % 32 == 0'; may be repeated");
}

void require_dims(ir::Function& main, const std::vector<std::string>& dims) {
  if (dims.empty()) return;
  std::set<std::string, std::less<>> known = names_of_sizes(main);
  for (const std::string& text : dims) {
    check_names(fact(text), known);
    main.facts.add(fact(text), "--dims");
  }
}

}  // namespace selkie::cli
