// What RDP says about small modules, as text. A file tests/rdp/golden/NAME.sk holds a module and, after `// expect:`,
// the summary and table of `selkie explain`; fail_NAME.sk a module that the analysis must refuse, with a part of the
// message after `// error:` in its first line. SELKIE_UPDATE=1 rewrites expectations.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/report.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view marker = "// expect:\n";
constexpr std::string_view error_prefix = "// error: ";

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(SELKIE_SOURCE_DIR "/tests/rdp/golden"))
    out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

class Explained : public testing::TestWithParam<std::string> {};

TEST_P(Explained, AsExpected) {
  fs::path path = fs::path(SELKIE_SOURCE_DIR "/tests/rdp/golden") / (GetParam() + ".sk");
  std::ifstream in(path);
  std::stringstream buffer;
  buffer << in.rdbuf();
  std::string text = buffer.str();
  size_t split = std::min(text.find(marker), text.size());
  auto module = ir::parse(text.substr(0, split), ops::op_set(), GetParam());
  ir::verify(*module);
  if (GetParam().starts_with("fail_")) {
    ASSERT_TRUE(text.starts_with(error_prefix));
    std::string expected = text.substr(error_prefix.size(), text.find('\n') - error_prefix.size());
    try {
      analysis::Rdp rdp(*module);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
    return;
  }
  analysis::Rdp rdp(*module);
  analysis::Report report = analysis::report(rdp);
  std::string actual = analysis::summary_text(report, rdp) + analysis::table_text(report);
  if (std::getenv("SELKIE_UPDATE") != nullptr) {
    std::ofstream(path) << text.substr(0, split) << marker << actual;
    return;
  }
  ASSERT_LT(split, text.size()) << "no '// expect:' line";
  EXPECT_EQ(actual, text.substr(split + marker.size()));
}

INSTANTIATE_TEST_SUITE_P(All, Explained, testing::ValuesIn(files()), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace selkie::tests
