#include "driver/versions.h"

#include <algorithm>
#include <functional>

#include "kernels/attention.h"
#include "kernels/block.h"
#include "kernels/winograd.h"
#include "runtime/profile.h"

namespace selkie::driver {
namespace {

using program::Program;
using program::Slot;

const kernels::KernelTable& table() { return kernels::table(kernels::best_isa()); }

std::string name(kernels::ConvolutionVersion version) {
  switch (version) {
    case kernels::ConvolutionVersion::depthwise:
      return "depthwise";
    case kernels::ConvolutionVersion::grouped:
      return "grouped";
    case kernels::ConvolutionVersion::winograd:
      return "winograd";
    case kernels::ConvolutionVersion::wide_winograd:
      return "winograd, tiles of 6x6";
    case kernels::ConvolutionVersion::winograd_of_packed:
      return "winograd, weights transformed in the call";
    case kernels::ConvolutionVersion::wide_winograd_of_packed:
      return "winograd, tiles of 6x6, weights transformed in the call";
    case kernels::ConvolutionVersion::strassen:
      return "strassen";
    case kernels::ConvolutionVersion::direct:
      return "direct";
  }
  return {};
}

std::string name(const kernels::ProductVersion& version) {
  using Factor = kernels::ProductVersion::Factor;
  if (version.strassen) return "strassen";
  if (version.one_column) return "one column";
  std::string loops = version.one_row ? "one row"
                      : version.few_rows
                          ? "few rows"
                          : fmt::format("tiles of at most {} × {}", table().tile_rows, table().tile_columns);
  if (version.b == Factor::in_place) return loops + ", right factor read in place";
  return version.b == Factor::packed_in_call ? loops + ", right factor packed in the call" : loops;
}

std::vector<VersionRange> ranges_of(const std::function<std::string(int64_t)>& version) {
  std::vector<VersionRange> ranges;
  for (int64_t size = 1; size <= largest_varied; ++size) {
    std::string here = version(size);
    if (!ranges.empty() && ranges.back().version == here) continue;
    if (!ranges.empty()) ranges.back().last = size - 1;
    ranges.push_back({.first = size, .last = {}, .version = std::move(here)});
  }
  return ranges;
}

// Reads the sizes of one program's calls.
class Reader {
 public:
  Reader(const compiler::Compiled& compiled, const Sizes& sizes) : compiled_(compiled), sizes_(sizes) {}

  CallVersions product(const program::MatrixProduct& call) const {
    CallVersions out{
        .kind = "product",
        .node = call.node,
        .form = fmt::format("[{}, {}] · [{}, {}]", text(call.m), text(call.k), text(call.k), text(call.n))};
    // The plan asks for no element, only what there is.
    static const float some = 0;
    kernels::Gemm gemm{.n = at(call.n).value_or(sample_),
                       .k = at(call.k).value_or(sample_),
                       .a_column_stride = at(call.a.column_stride).value_or(sample_),
                       .packed_b = call.packed ? &some : nullptr,
                       .b_row_stride = at(call.b.row_stride).value_or(sample_),
                       .b_column_stride = at(call.b.column_stride).value_or(sample_),
                       .c_row_stride = at(call.c.row_stride).value_or(sample_),
                       .bias = call.bias == program::no_register ? nullptr : &some,
                       .finish = {.addend = call.finish.addend == program::no_register ? nullptr : &some,
                                  .low = call.finish.low,
                                  .high = call.finish.high},
                       .exact = call.exact};
    if (!is_constant(call.n) || !is_constant(call.k)) out.fixed = fmt::format("n = {}, k = {}", gemm.n, gemm.k);
    auto version = [&](int64_t m) {
      gemm.m = m;
      return name(kernels::product_version(table(), gemm));
    };
    bool all_known = at(call.n) && at(call.k) && at(call.b.row_stride) && at(call.b.column_stride);
    vary(call.m, "m", version, all_known, out);
    if (!out.chosen.empty()) out.chosen += rows_text(gemm, *at(call.m));
    return out;
  }

  CallVersions convolution(const program::Convolution& call) const {
    CallVersions out{.kind = "convolution", .node = call.node, .form = form_of(call)};
    kernels::ConvolutionShape shape = runtime::unsized_shape(call);
    bool known = at(call.batch).has_value();
    shape.batch = at(call.batch).value_or(1);
    for (size_t i = 0; i < 3; ++i) {
      known = known && at(call.input_dims[i]) && at(call.output_dims[i]) && at(call.pads[i]);
      shape.input[i] = at(call.input_dims[i]).value_or(1);
      shape.output[i] = at(call.output_dims[i]).value_or(1);
      shape.pad[i] = at(call.pads[i]).value_or(0);
    }
    auto version = [&] { return name(kernels::convolution_version(table(), shape, runtime::packed_for(call))); };
    if (known) {
      out.here = fmt::format("{} × {} pixels, batch = {}", shape.output[1], shape.output[2], shape.batch);
      out.chosen = version();
    }
    bool varies = kernels::winograd_applies(table(), shape) || shape.taps() == 1;
    if (call.exact || call.weights == program::no_register || !varies ||
        std::ranges::all_of(call.output_dims, [&](Slot s) { return is_constant(s); })) {
      out.ranges = {{.first = 0, .last = {}, .version = version()}};
      return out;
    }
    out.varied = "height = width";
    out.fixed = fmt::format("batch = {}", shape.batch);
    out.ranges = ranges_of([&](int64_t side) {
      shape.output[1] = shape.output[2] = side;
      if (shape.taps() == 1) shape.input = shape.output;
      return version();
    });
    return out;
  }

  CallVersions attention(const program::Attention& call) const {
    CallVersions out{.kind = "attention",
                     .node = call.node,
                     .form = fmt::format("{} queries, {} keys, {} heads of {}", text(call.queries), text(call.keys),
                                         text(call.heads), text(call.depth))};
    kernels::Attention attention{.heads = std::max<int64_t>(at(call.heads).value_or(1), 1),
                                 .key_heads = std::max<int64_t>(at(call.key_heads).value_or(1), 1),
                                 .keys = at(call.keys).value_or(sample_),
                                 .depth = at(call.depth).value_or(sample_),
                                 .columns = at(call.columns).value_or(sample_)};
    auto version = [&](int64_t queries) {
      attention.queries = queries;
      return kernels::plan_attention(table(), attention, 1).direct ? "keys and values read in place"
                                                                   : "blocks of packed keys and values";
    };
    vary(call.queries, "queries", version, at(call.heads) && at(call.key_heads), out);
    return out;
  }

 private:
  // For what the given sizes do not say.
  static constexpr int64_t sample_ = 64;

  std::optional<int64_t> at(Slot slot) const {
    sym::Expr e = compiled_.slots[slot];
    return e ? value_of(e, sizes_) : std::nullopt;
  }

  std::string text(Slot slot) const {
    sym::Expr e = compiled_.slots[slot];
    return e ? sym::to_string(e) : "?";
  }

  bool is_constant(Slot slot) const { return compiled_.slots[slot] && compiled_.slots[slot].is_constant(); }

  // How the rows of a product are split over tiles.
  static std::string rows_text(kernels::Gemm gemm, int64_t m) {
    gemm.m = m;
    if (m <= 1 || gemm.n == 0) return {};
    int64_t rows = std::min(m, kernels::plan_gemm(table(), gemm, 1).rows_of_block);
    kernels::RowTiles tiles(table(), rows);
    std::string out = fmt::format(": {} rows at a time as {} × {}", rows, tiles.count - tiles.extra, tiles.rows);
    return tiles.extra == 0 ? out : out + fmt::format(" + {} × {}", tiles.extra, tiles.rows + 1);
  }

  template <class Version>
  void vary(Slot size, std::string_view what, Version version, bool rest_is_known, CallVersions& out) const {
    std::optional<int64_t> here = at(size);
    if (here && rest_is_known) {
      out.here = fmt::format("{} = {}", what, *here);
      out.chosen = version(*here);
    }
    if (here && is_constant(size)) {
      out.ranges = {{.first = 0, .last = {}, .version = version(*here)}};
      return;
    }
    out.varied = what;
    out.ranges = ranges_of(version);
  }

  static std::string form_of(const program::Convolution& call) {
    std::string kernel = fmt::format("{}×{}", call.kernel[1], call.kernel[2]);
    if (call.kernel[0] != 1) kernel = fmt::format("{}×{}", call.kernel[0], kernel);
    std::string out = fmt::format("{}, {} → {} channels", kernel, call.input_channels, call.output_channels);
    if (call.groups != 1) out += fmt::format(" in {} groups", call.groups);
    if (call.stride[2] != 1 || call.stride[1] != 1)
      out += fmt::format(", stride {}×{}", call.stride[1], call.stride[2]);
    return out;
  }

  const compiler::Compiled& compiled_;
  const Sizes& sizes_;
};

}  // namespace

std::optional<int64_t> size_of(std::string_view symbol, const Sizes& sizes) {
  auto found = std::ranges::find(sizes, symbol, [](const auto& size) { return std::string_view(size.first); });
  return found == sizes.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> value_of(sym::Expr e, const Sizes& sizes) {
  return sym::evaluate(e, [&](std::string_view name) { return size_of(name, sizes); });
}

std::vector<CallVersions> call_versions(const compiler::Compiled& compiled, const Sizes& sizes) {
  const Program& program = compiled.program;
  Reader reader(compiled, sizes);
  std::vector<CallVersions> calls;
  for (const program::Instruction& i : program.code) {
    if (i.op == program::Opcode::product) calls.push_back(reader.product(program.products[i.a]));
    if (i.op == program::Opcode::convolution) calls.push_back(reader.convolution(program.convolutions[i.a]));
    if (i.op == program::Opcode::attention) calls.push_back(reader.attention(program.attentions[i.a]));
  }
  return calls;
}

}  // namespace selkie::driver
