#include "kernels/versions.h"

#include "kernels/block.h"
#include "kernels/winograd.h"

namespace selkie::kernels {

ConvolutionVersion convolution_version(const KernelTable& table, const ConvolutionShape& shape,
                                       const PackedFor& kernels) {
  if (kernels.depthwise) return ConvolutionVersion::depthwise;
  if (kernels.grouped) return ConvolutionVersion::grouped;
  WinogradWeights form = kernels.wide_winograd ? WinogradWeights::transformed_for_six : WinogradWeights::transformed;
  if (kernels.winograd && (!kernels.direct || winograd_wins(table, shape, form)))
    return kernels.wide_winograd ? ConvolutionVersion::wide_winograd : ConvolutionVersion::winograd;
  bool transforms = !kernels.exact && winograd_wins(table, shape, WinogradWeights::packed);
  return transforms ? ConvolutionVersion::winograd_of_packed : ConvolutionVersion::direct;
}

ProductVersion product_version(const KernelTable& table, const Gemm& gemm) {
  using Factor = ProductVersion::Factor;
  Factor b = gemm.packed_b                                   ? Factor::packed_before
             : plan_gemm(table, gemm, 1).packed_columns == 0 ? Factor::in_place
                                                             : Factor::packed_in_call;
  bool in_place = b == Factor::in_place;
  return {.b = b,
          .one_row = takes_row_kernel(table, {.rows = gemm.m,
                                              .taps = 1,
                                              .depth = gemm.k,
                                              .depth_stride = in_place ? gemm.b_row_stride : table.tile_columns,
                                              .accumulate = false,
                                              .partial_panel = in_place && gemm.n % table.tile_columns != 0})};
}

}  // namespace selkie::kernels
