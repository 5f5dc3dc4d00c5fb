// Runs the benchmarks of this folder. The exit code is 1 if a bar is missed.
#include "runtime/benches.h"

int main() {
  bool passed = selkie::runtime::bench_arena();
  selkie::runtime::bench_workers();
  return passed ? 0 : 1;
}
