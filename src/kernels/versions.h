// Which of several kernels that do the same work a call takes. It follows from sizes and strides alone, so that it can
// be told before a run.
#pragma once

#include <optional>

#include "kernels/convolution.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"

namespace selkie::kernels {

enum class ConvolutionVersion {
  direct,
  depthwise,
  grouped,
  winograd,
  winograd_of_packed,
  wide_winograd,
  wide_winograd_of_packed,
  strassen
};
// What Winograd's kernel takes, if it is that.
std::optional<WinogradWeights> winograd_weights(ConvolutionVersion version);
// The kernels that weights are packed for: the depthwise one, that of groups, or the direct one, Winograd's or both.
struct PackedFor {
  bool depthwise;
  bool grouped;
  bool direct;
  bool winograd;
  bool wide_winograd;  // Winograd's are for tiles of 6x6 outputs
  bool exact;          // by the direct kernel as it is, not by an algorithm whose error is larger
};
ConvolutionVersion convolution_version(const KernelTable& table, const ConvolutionShape& shape,
                                       const PackedFor& kernels);

// A convolution of one tap whose pixels are the rows of a product; its weights are packed for both.
bool is_product(const ConvolutionShape& shape);
Gemm product_of(const Convolution& convolution);

struct ProductVersion {
  enum class Factor { packed_before, packed_in_call, in_place };
  Factor b;
  bool one_row;   // or
  bool few_rows;  // by the kernel that reads panels side by side, else by register tiles
  bool strassen;  // these of sums of quarters
  bool one_column;
};
ProductVersion product_version(const KernelTable& table, const Gemm& gemm);

}  // namespace selkie::kernels
