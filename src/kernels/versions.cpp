#include "kernels/versions.h"

#include "kernels/block.h"
#include "kernels/strassen.h"

namespace selkie::kernels {
namespace {

struct WinogradVersion {
  ConvolutionVersion version;
  WinogradWeights weights;
};
constexpr WinogradVersion winograd_versions[] = {
    {ConvolutionVersion::winograd, WinogradWeights::transformed},
    {ConvolutionVersion::wide_winograd, WinogradWeights::transformed_for_six},
    {ConvolutionVersion::winograd_of_packed, WinogradWeights::packed},
    {ConvolutionVersion::wide_winograd_of_packed, WinogradWeights::packed_for_six}};

bool has_weights(const PackedFor& kernels, WinogradWeights form) {
  if (is_packed(form)) return kernels.direct && !kernels.exact;
  return kernels.winograd && kernels.wide_winograd == is_for_six(form);
}

// The fastest of Winograd's that wins; if there are weights for nothing else, the one that takes them.
std::optional<ConvolutionVersion> best_winograd(const KernelTable& table, const ConvolutionShape& shape,
                                                const PackedFor& kernels) {
  if (kernels.direct && !winograd_applies(table, shape)) return {};
  std::optional<ConvolutionVersion> best;
  double least = 0;
  for (const auto& [version, weights] : winograd_versions) {
    if (!has_weights(kernels, weights) || (kernels.direct && !winograd_wins(table, shape, weights))) continue;
    double time = winograd_time(table, shape, weights);
    if (best && time >= least) continue;
    best = version;
    least = time;
  }
  return best;
}

}  // namespace

std::optional<WinogradWeights> winograd_weights(ConvolutionVersion asked) {
  for (const auto& [version, weights] : winograd_versions)
    if (version == asked) return weights;
  return {};
}

ConvolutionVersion convolution_version(const KernelTable& table, const ConvolutionShape& shape,
                                       const PackedFor& kernels) {
  if (kernels.depthwise) return ConvolutionVersion::depthwise;
  if (kernels.grouped) return ConvolutionVersion::grouped;
  if (std::optional<ConvolutionVersion> winograd = best_winograd(table, shape, kernels)) return *winograd;
  if (kernels.exact) return ConvolutionVersion::direct;
  // The choice asks for no element.
  static const float packed = 0;
  bool strassen = is_product(shape) && strassen_wins(table, product_of({.shape = shape, .packed_weights = &packed}));
  return strassen ? ConvolutionVersion::strassen : ConvolutionVersion::direct;
}

bool is_product(const ConvolutionShape& shape) {
  return shape.taps() == 1 && shape.groups == 1 && shape.input == shape.output &&
         shape.stride == std::array<int64_t, 3>{1, 1, 1} && shape.pad == std::array<int64_t, 3>{0, 0, 0};
}

Gemm product_of(const Convolution& convolution) {
  return {.m = convolution.shape.output_pixels(),
          .n = convolution.shape.output_channels,
          .k = convolution.shape.input_channels,
          .a = convolution.input,
          .a_row_stride = convolution.input_pixel_stride,
          .packed_b = convolution.packed_weights,
          .c = convolution.output,
          .c_row_stride = convolution.output_pixel_stride,
          .bias = convolution.bias,
          .finish = convolution.finish,
          .epilogue = convolution.epilogue};
}

ProductVersion product_version(const KernelTable& table, const Gemm& gemm) {
  using Factor = ProductVersion::Factor;
  Factor b = gemm.packed_b                                   ? Factor::packed_before
             : plan_gemm(table, gemm, 1).packed_columns == 0 ? Factor::in_place
                                                             : Factor::packed_in_call;
  bool in_place = b == Factor::in_place;
  bool beside = takes_row_kernel(table, {.rows = gemm.m,
                                         .many_panels = are_many_panels(table, gemm.n),
                                         .taps = 1,
                                         .depth = gemm.k,
                                         .depth_stride = in_place ? gemm.b_row_stride : table.tile_columns,
                                         .accumulate = false,
                                         .partial_panel = in_place && gemm.n % table.tile_columns != 0});
  return {.b = b,
          .one_row = beside && gemm.m == 1,
          .few_rows = beside && gemm.m > 1,
          .strassen = strassen_wins(table, gemm),
          .one_column = multiplies_column(gemm)};
}

}  // namespace selkie::kernels
