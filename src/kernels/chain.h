// Convolutions one after the other, each of which reads only what the one before it has made, some lines at a time:
// what lies between them stays in the second-level cache and is never stored as a whole.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/versions.h"

namespace selkie::kernels {

// One of a chain. Outputs of all but the last have no memory of their own, so that `output` is not used there.
struct ChainLink {
  Convolution convolution;
  ConvolutionVersion version;
  size_t epilogue_buffers = 0;  // at most 64
  uint64_t output_buffers = 0;  // those of them that stand for the output, as bits
};

inline constexpr size_t most_links = 8;

// Cuts convolutions that follow each other into chains such that least is stored between these: the number of links of
// each, 1 where a convolution is best alone.
std::vector<size_t> cut_into_chains(std::span<const ConvolutionShape> shapes,
                                    std::span<const ConvolutionVersion> versions, int threads);

struct ChainPlan {
  int64_t lines;          // of the last output, at a time
  int64_t lines_of_task;  // of all images
  int64_t tasks;
  std::array<int64_t, most_links> most_lines;  // that a link makes at a time, and that lie between it and the next one
  size_t scratch_bytes;                        // for each thread, aligned to 64
};

// Links are direct or depthwise ones of two spatial axes; each reads the output of the one before.
ChainPlan plan_chain(const KernelTable& table, std::span<const ChainLink> links, int threads);
// With so many lines at a time.
ChainPlan plan_chain(const KernelTable& table, std::span<const ChainLink> links, int threads, int64_t lines);
void run_chain(const KernelTable& table, std::span<const ChainLink> links, const ChainPlan& plan, int64_t task_begin,
               int64_t task_end, void* scratch);

}  // namespace selkie::kernels
