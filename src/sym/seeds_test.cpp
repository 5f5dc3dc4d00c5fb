// The seeds of all randomised tests of this folder.
#include <fmt/core.h>

#include <cstdlib>

#include "sym/random_tree.h"

namespace selkie::sym::testing {

std::vector<uint64_t> seeds() {
  static const uint64_t fresh = [] {
    const char* given = std::getenv("SELKIE_SEED");
    uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
    fmt::print("[   SEED   ] SELKIE_SEED={}\n", seed);
    return seed;
  }();
  return {20240917, fresh};
}

}  // namespace selkie::sym::testing
