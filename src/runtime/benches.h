// The benchmarks of this folder, which one program prints.
#pragma once

namespace selkie::runtime {

bool bench_arena();  // whether its bar is met
void bench_workers();

}  // namespace selkie::runtime
