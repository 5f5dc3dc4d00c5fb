// Golden texts. A file tests/golden/NAME.sk holds a module, the passes to run and the expected text:
//
//     // passes: fold_constants, dead_code
//     …module…
//     // expect:
//     …module…
//
// and fail_NAME.sk a module that must be refused, with `// error: a part of the message` as its first line.
// SELKIE_UPDATE=1 rewrites expectations, so that the reviewer reads the diff.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view marker = "// expect:\n";

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string first_line_after(const std::string& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return "";
  return text.substr(prefix.size(), text.find('\n') - prefix.size());
}

std::vector<std::string> files(bool failing) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(SELKIE_SOURCE_DIR "/tests/golden"))
    if (entry.path().extension() == ".sk" && entry.path().stem().string().starts_with("fail_") == failing)
      out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

fs::path path_of(const std::string& name) { return fs::path(SELKIE_SOURCE_DIR "/tests/golden") / (name + ".sk"); }

class Golden : public testing::TestWithParam<std::string> {};
class Refused : public testing::TestWithParam<std::string> {};

TEST_P(Golden, GivesTheExpectedText) {
  std::string text = read(path_of(GetParam()));
  size_t split = text.find(marker);
  ASSERT_NE(split, std::string::npos) << "no '// expect:' line";
  auto module = ir::parse(text.substr(0, split), ops::op_set(), GetParam());
  ir::verify(*module);
  std::stringstream names(first_line_after(text, "// passes:"));
  for (std::string name; std::getline(names, name, ',');) {
    std::erase(name, ' ');
    const passes::Pass* pass = passes::find_pass(name);
    ASSERT_NE(pass, nullptr) << "no pass '" << name << "'";
    passes::run_pass(*pass, *module);
    EXPECT_FALSE(passes::run_pass(*pass, *module)) << name << " finds something to do when run again";
  }
  std::string actual = ir::print(*module);
  EXPECT_EQ(ir::print(*ir::parse(actual, ops::op_set())), actual) << "does not round-trip";
  if (std::getenv("SELKIE_UPDATE") != nullptr) {
    std::ofstream(path_of(GetParam())) << text.substr(0, split) << marker << actual;
    return;
  }
  EXPECT_EQ(actual, text.substr(split + marker.size()));
}

TEST_P(Refused, WithTheExpectedMessage) {
  std::string text = read(path_of(GetParam()));
  std::string expected = first_line_after(text, "// error: ");
  ASSERT_NE(expected, "") << "no '// error:' line";
  try {
    ir::verify(*ir::parse(text, ops::op_set(), GetParam()));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(files(false)), [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(All, Refused, testing::ValuesIn(files(true)), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace selkie::tests
