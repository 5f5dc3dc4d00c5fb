// What `selkie explain` says of compiled programs. A file tests/cpu/golden/NAME.sk holds a module and, after
// `// expect:`, what does not depend on the machine; a first line `// sizes: N=4, S=8` gives sizes for the figures.
// SELKIE_UPDATE=1 rewrites expectations.
#include "driver/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "driver/build.h"
#include "ir/parse.h"
#include "kernels/versions.h"
#include "kernels/winograd.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view marker = "// expect:\n";
constexpr std::string_view sizes_prefix = "// sizes: ";

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(SELKIE_SOURCE_DIR "/tests/cpu/golden"))
    out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

driver::Sizes sizes_in(const std::string& text) {
  driver::Sizes sizes;
  if (!text.starts_with(sizes_prefix)) return sizes;
  std::stringstream line(text.substr(sizes_prefix.size(), text.find('\n') - sizes_prefix.size()));
  for (std::string part; std::getline(line, part, ',');) {
    std::erase(part, ' ');
    sizes.emplace_back(part.substr(0, part.find('=')), std::stoll(part.substr(part.find('=') + 1)));
  }
  return sizes;
}

driver::CpuReport explain(const std::string& text, const driver::Sizes& sizes = {}, bool exact = false) {
  auto module = ir::parse(text, ops::op_set(), "test");
  return driver::explain(*module, {.compiler = {.exact = exact}}, sizes);
}

class Reported : public testing::TestWithParam<std::string> {};

TEST_P(Reported, AsExpected) {
  fs::path path = fs::path(SELKIE_SOURCE_DIR "/tests/cpu/golden") / (GetParam() + ".sk");
  std::ifstream in(path);
  std::stringstream buffer;
  buffer << in.rdbuf();
  std::string text = buffer.str();
  size_t split = std::min(text.find(marker), text.size());
  std::string actual = driver::summary_text(explain(text.substr(0, split), sizes_in(text)));
  if (std::getenv("SELKIE_UPDATE") != nullptr) {
    std::ofstream(path) << text.substr(0, split) << marker << actual;
    return;
  }
  ASSERT_LT(split, text.size()) << "no '// expect:' line";
  EXPECT_EQ(actual, text.substr(split + marker.size()));
}

INSTANTIATE_TEST_SUITE_P(All, Reported, testing::ValuesIn(files()), [](const auto& test) { return test.param; });

std::string constant(std::string_view name, int64_t count, std::string_view dims) {
  std::string values;
  for (int64_t i = 0; i < count; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", i % 3 - 1);
  return fmt::format("const @{}: f32[{}] = {{{}}}\n", name, dims, values);
}

std::string convolution(std::string_view image) {
  return constant("w", 32 * 32 * 9, "32, 32, 3, 3") +
         fmt::format("func @main(%x: {}) -> (y: ?) {{ %y = conv(%x, @w) from \"body\" return %y }}", image);
}

const std::string& version_at(const driver::CallVersions& call, int64_t size) {
  auto holds = [&](const driver::VersionRange& range) {
    return range.first <= size && size <= range.last.value_or(size);
  };
  EXPECT_EQ(std::ranges::count_if(call.ranges, holds), 1) << "at " << size;
  return std::ranges::find_if(call.ranges, holds)->version;
}

TEST(Versions, OfConvolutionsAreWhatTheKernelsChoose) {
  driver::CpuReport report = explain(convolution("f32[N, 32, H, W]"), {{"N", 1}, {"H", 66}, {"W", 66}});
  ASSERT_EQ(report.calls.size(), 1u);
  const driver::CallVersions& call = report.calls[0];
  EXPECT_EQ(call.varied, "height = width");
  const kernels::KernelTable& table = kernels::table(kernels::best_isa());
  auto module = ir::parse(convolution("f32[N, 32, H, W]"), ops::op_set(), "test");
  const program::Convolution kept = driver::compile(*module).program.convolutions.at(0);
  kernels::PackedFor packed{.depthwise = false,
                            .grouped = false,
                            .direct = kept.weights != program::no_register,
                            .winograd = kept.winograd != program::no_register,
                            .wide_winograd = kept.wide_winograd,
                            .exact = false};
  std::set<std::string> chosen;
  for (int64_t side = 1; side <= driver::largest_varied; ++side) {
    kernels::ConvolutionShape shape{.input_channels = 32,
                                    .output_channels = 32,
                                    .input = {1, side, side},
                                    .output = {1, side, side},
                                    .kernel = {1, 3, 3}};
    auto form = kernels::winograd_weights(kernels::convolution_version(table, shape, packed));
    std::string version = form ? "winograd" : "direct";
    if (form && kernels::is_for_six(*form)) version += ", tiles of 6x6";
    if (form && kernels::is_packed(*form)) version += ", weights transformed in the call";
    EXPECT_EQ(version_at(call, side), version) << side;
    chosen.insert(version);
    if (side == 64) EXPECT_EQ(call.chosen, version);
  }
  EXPECT_TRUE(chosen.contains("direct") && chosen.size() > 1) << "nothing is chosen here";
}

TEST(Versions, OfExactAndKnownConvolutions) {
  driver::CpuReport exact = explain(convolution("f32[N, 32, H, W]"), {}, true);
  ASSERT_EQ(exact.calls.at(0).ranges.size(), 1u);
  EXPECT_EQ(exact.calls[0].ranges[0].version, "direct");
  driver::CpuReport known = explain(convolution("f32[1, 32, 66, 66]"));
  EXPECT_EQ(known.calls.at(0).ranges.size(), 1u);
  EXPECT_EQ(known.calls[0].varied, "");
  EXPECT_EQ(known.calls[0].ranges[0].version, known.calls[0].chosen);
  driver::CpuReport depthwise =
      explain(constant("w", 8 * 9, "8, 1, 3, 3") +
              "func @main(%x: f32[N, 8, H, W]) -> (y: ?) { %y = conv(%x, @w) {group = 8} return %y }");
  EXPECT_EQ(depthwise.calls.at(0).ranges.at(0).version, "depthwise");
}

TEST(Versions, OfGroups) {
  auto version = [](int64_t channels, int64_t groups, int64_t side) {
    int64_t inputs = channels / groups;
    return explain(constant("w", channels * inputs * side * side,
                            fmt::format("{}, {}, {}, {}", channels, inputs, side, side)) +
                   fmt::format(
                       "func @main(%x: f32[N, {}, H, W]) -> (y: ?) {{ %y = conv(%x, @w) {{group = {}}} return %y }}",
                       channels, groups))
        .calls.at(0)
        .ranges.at(0)
        .version;
  };
  EXPECT_EQ(version(12, 3, 3), "grouped");
  EXPECT_EQ(version(12, 3, 2), "grouped");
  EXPECT_EQ(version(64, 32, 1), "grouped");
  EXPECT_EQ(version(64, 2, 1), "direct");   // one tap: a product
  EXPECT_EQ(version(512, 2, 3), "direct");  // channels enough for both of its vectors
  EXPECT_EQ(version(12, 12, 3), "depthwise");
}

TEST(Versions, OfProductsByRows) {
  const kernels::KernelTable& table = kernels::table(kernels::best_isa());
  driver::CpuReport packed =
      explain(constant("w", 8 * 40, "8, 40") + "func @main(%x: f32[M, 8]) -> (y: ?) { %y = matmul(%x, @w) return %y }",
              {{"M", 2 * table.tile_rows - 1}});
  const driver::CallVersions& call = packed.calls.at(0);
  ASSERT_EQ(call.ranges.size(), 2u);
  EXPECT_EQ(call.ranges[0].last, 1);
  EXPECT_EQ(call.ranges[0].version, "one row");
  EXPECT_TRUE(call.ranges[1].version.starts_with("tiles of at most")) << call.ranges[1].version;
  // Evenly over two tiles.
  std::string rows = fmt::format("1 × {} + 1 × {}", table.tile_rows - 1, table.tile_rows);
  EXPECT_NE(call.chosen.find(rows), std::string::npos) << call.chosen;

  // Panels beside each other, where there are several of them.
  driver::CpuReport wide = explain(constant("w", 8 * 512, "8, 512") +
                                   "func @main(%x: f32[M, 8]) -> (y: ?) { %y = matmul(%x, @w) return %y }");
  EXPECT_EQ(version_at(wide.calls.at(0), 1), "one row");
  EXPECT_EQ(version_at(wide.calls[0], 2), "few rows");
  EXPECT_TRUE(version_at(wide.calls[0], 7).starts_with("tiles of at most"));

  driver::CpuReport given =
      explain("func @main(%x: f32[M, 8], %w: f32[8, 40]) -> (y: ?) { %y = matmul(%x, %w) return %y }");
  const driver::CallVersions& in_place = given.calls.at(0);
  EXPECT_NE(version_at(in_place, 1).find("in place"), std::string::npos);
  EXPECT_NE(version_at(in_place, driver::largest_varied).find("packed in the call"), std::string::npos);
}

TEST(Report, CodeAndDistinctKernels) {
  driver::CpuReport report = explain(
      "func @main(%x: f32[N], %y: f32[M]) -> (a: ?, b: ?, c: ?) { %a = exp(%x) %b = exp(%y) %c = neg(%x) return %a, "
      "%b, "
      "%c }");
  EXPECT_EQ(report.kernels, 3u);
  EXPECT_EQ(report.distinct_kernels, 2u);
  EXPECT_GT(report.image.code.size(), 0u);
  EXPECT_EQ(report.image.entries.size(), 2u);
}

TEST(Report, GivenSizesAreNotSampled) {
  driver::CpuReport report = explain(
      "func @main(%x: f32[N, M]) -> (y: ?) { %a = softmax(%x) %b = softmax(%a) {axis = 0} %y = neg(%b) return %y }",
      {{"N", 3}});
  EXPECT_EQ(report.sizes, (driver::Sizes{{"N", 3}, {"M", 64}}));
  EXPECT_EQ(report.model.bytes, 2 * 4 * 3 * 64);
  EXPECT_EQ(report.model.open, 0u);
  EXPECT_EQ(report.model.expression, "8*M*N");
}

}  // namespace
}  // namespace selkie::tests
