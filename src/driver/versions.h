// Which kernel a library call of a program takes at which sizes, asked of the functions that decide it in a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"

namespace selkie::driver {

// Sizes by name of symbol.
using Sizes = std::vector<std::pair<std::string, int64_t>>;
std::optional<int64_t> size_of(std::string_view symbol, const Sizes& sizes);
std::optional<int64_t> value_of(sym::Expr e, const Sizes& sizes);

struct VersionRange {
  int64_t first;
  std::optional<int64_t> last;  // none: up to the largest that was looked at
  std::string version;
};

struct CallVersions {
  std::string kind;  // "product", "convolution" or "attention"
  std::string node;
  std::string form;                  // what it computes
  std::string varied;                // what the ranges are of: "m", "height = width", "queries"; empty if all is known
  std::vector<VersionRange> ranges;  // one, from 0 on, if all is known
  std::string fixed;                 // sizes that were held while another was varied: "batch = 1"
  std::string here;                  // what is varied at the given sizes: "m = 64"; empty where these do not say all
  std::string chosen;                // and the version there
};

// Sizes are looked at from 1 to here, each.
inline constexpr int64_t largest_varied = 512;

// In the order of the code.
std::vector<CallVersions> call_versions(const compiler::Compiled& compiled, const Sizes& sizes);

}  // namespace selkie::driver
