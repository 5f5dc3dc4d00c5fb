// The instruction sets that tests run code of. For tests only.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "codegen/cpu/compile.h"

namespace selkie::codegen::cpu::testing {

// Those that the host runs; of the others, their vectors and masks, which LLVM breaks down to what the host has.
inline std::vector<Isa> runnable_isas() {
  static std::deque<std::string> names;
  std::vector<Isa> isas;
  const Isa& host = host_isa();
  for (Isa isa : all_isas()) {
    if (!host_runs(isa)) {
      if ((isa.has_fma && !host.has_fma) || (isa.converts_half && !host.converts_half)) continue;
      isa.name = names.emplace_back(std::string(isa.name) + " on " + std::string(host.name));
      isa.triple = host.triple;
      isa.cpu = host.cpu;
      isa.features = host.features;
    }
    isas.push_back(isa);
  }
  return isas;
}

}  // namespace selkie::codegen::cpu::testing
