// Compiled models through a file and back: the same answers, bit for bit, and no crash whatever the file holds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../ops/sample.h"
#include "../rdp/generator.h"
#include "driver/artifact.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"
#include "program/checksum.h"
#include "program/file.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;

// A file that goes with the test.
class TemporaryFile {
 public:
  TemporaryFile() {
    static int count = 0;
    path_ = (fs::path(testing::TempDir()) / fmt::format("selkie_artifact_{}_{}", getpid(), count++)).string();
  }
  ~TemporaryFile() { fs::remove(path_); }
  const std::string& path() const { return path_; }

  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Under a new inode, so that what is mapped stays as it was.
  void write(std::string_view bytes) const {
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

bool equal(const HostValue& a, const HostValue& b) {
  if (a.is_tensor() && b.is_tensor()) {
    const Tensor& x = a.tensor();
    const Tensor& y = b.tensor();
    if (x.dtype() != y.dtype() || x.dims() != y.dims()) return false;
    if (x.dtype() == DType::str) return std::ranges::equal(x.values<std::string>(), y.values<std::string>());
    return std::equal(x.bytes(), x.bytes() + x.byte_size(), y.bytes());
  }
  if (a.is_sequence() && b.is_sequence())
    return std::ranges::equal(a.sequence(), b.sequence(), [](const auto& x, const auto& y) { return equal(x, y); });
  return a.describe() == b.describe();
}

// The outputs, or the message of the error.
using Result = std::variant<std::vector<HostValue>, std::string>;
Result run(runtime::Context& context, const std::vector<HostValue>& inputs) {
  try {
    return context.run(inputs);
  } catch (const Error& error) {
    return std::string(error.what());
  }
}

void expect_equal(const Result& actual, const Result& expected) {
  ASSERT_EQ(actual.index(), expected.index());
  if (expected.index() == 1) {
    EXPECT_EQ(std::get<1>(actual), std::get<1>(expected));
    return;
  }
  const auto& a = std::get<0>(actual);
  const auto& e = std::get<0>(expected);
  ASSERT_EQ(a.size(), e.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(equal(a[i], e[i])) << "output " << i << " is " << a[i].describe() << ", not " << e[i].describe();
}

struct Pair {
  driver::Built built;
  driver::Built loaded;
};

Pair through_file(std::shared_ptr<ir::Module> module) {
  TemporaryFile file;
  driver::Built built = driver::build(std::move(module));
  driver::save(built, file.path());
  return {.built = std::move(built), .loaded = driver::load(file.path())};
}

void check_same(const Pair& pair, const std::vector<HostValue>& inputs) {
  runtime::Context built(pair.built.executable);
  runtime::Context loaded(pair.loaded.executable);
  Result expected = run(built, inputs);
  expect_equal(run(loaded, inputs), expected);
}

TEST(Artifacts, SamplesOfAllOperatorsGiveTheSame) {
  size_t host_calls = 0;
  size_t kernels = 0;
  for (const ir::OpDef* op : ops::op_set().all()) {
    if (!op->deterministic || !op->eval) continue;
    for (const ir::Sample& s : op->samples) {
      ParsedSample sample = parse_sample(*op, s);
      if (!sample.good()) continue;
      SCOPED_TRACE(fmt::format("{} {}", op->name, s.call));
      std::vector<HostValue> inputs = sample.inputs(1);
      for (bool is_typed : {false, true}) {
        std::shared_ptr<ir::Module> module = sample.module();
        if (is_typed) type_parameters(*module, inputs);
        Pair pair = through_file(std::move(module));
        host_calls += pair.loaded.host_calls;
        kernels += pair.loaded.kernels;
        EXPECT_EQ(pair.loaded.host_calls, pair.built.host_calls);
        EXPECT_EQ(pair.loaded.kernels, pair.built.kernels);
        EXPECT_EQ(pair.loaded.nodes, pair.built.nodes);
        EXPECT_EQ(ir::print(*pair.loaded.declared), ir::print(*pair.built.declared));
        check_same(pair, inputs);
      }
    }
  }
  EXPECT_GT(host_calls, 50u);
  EXPECT_GT(kernels, 50u);
  fmt::print("{} kernels, {} host calls\n", kernels, host_calls);
}

TEST(Artifacts, RandomProgramsGiveTheSame) {
  for (uint64_t seed = 7'000'000; seed < 7'000'060 && !HasFailure(); ++seed) {
    RandomProgram program = random_program(seed, 25);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, ir::print(*program.module)));
    std::shared_ptr<ir::Module> module = random_program(seed, 25).module;
    Pair pair = through_file(std::move(module));
    check_same(pair, program.inputs);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 3; ++i) check_same(pair, random_inputs(*program.module, random));
  }
}

// Kernels, products with packed weights, operators on the host with constants in their regions and functions.
constexpr const char* mixed = R"(
const @w: f32[4, 4] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
const @step: f32[] = {0.5}
const @trips: i64[] = {3}
const @yes: bool[] = {1}
const @unused: f32[2] = {1, 2}
func @twice(%a: f32[*]) -> (f32[*]) {
  %b = add(%a, %a)
  return %b
}
func @main(%x: f32[N, 4], %words: str[M]) -> (y: f32[N, 4], i: i64[2, K], s: str[M]) where N <= 100 {
  %a = matmul(%x, @w)
  %b = relu(%a)
  %i = non_zero(%b)
  %n = neg(%b)
  %y = loop(@trips, @yes, %x) body(%t: i64[], %c: bool[], %state: f32[N, 4]) {
    %d = mul(%n, @step)
    %e = add(%state, %d)
    %f = call(%e) {callee = @twice}
    yield %c, %f
  }
  %s = string_concat(%words, %words)
  return %y, %i, %s
})";

std::vector<HostValue> mixed_inputs(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n) * 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  std::vector<std::string> words{"one", "", "three"};
  return {Tensor::from<float>(DType::f32, {n, 4}, x), Tensor::from<std::string>(DType::str, {3}, words)};
}

std::shared_ptr<ir::Module> mixed_module() { return ir::parse(mixed, ops::op_set(), "mixed"); }

TEST(Artifacts, OperatorsOnTheHostGetWhatTheyNeed) {
  Pair pair = through_file(mixed_module());
  EXPECT_GE(pair.loaded.host_calls, 2u);
  EXPECT_GE(pair.loaded.kernels, 1u);
  for (int64_t n : {0, 1, 5, 100}) {
    runtime::Context context(pair.loaded.executable);
    ASSERT_EQ(context.run(mixed_inputs(n)).size(), 3u);
    check_same(pair, mixed_inputs(n));
  }
  // Weights that only the packed product uses are not kept a second time.
  EXPECT_EQ(ir::print(*pair.loaded.module).find("@w"), std::string::npos);
}

TEST(Artifacts, AFileWrittenFromAFileIsTheSame) {
  TemporaryFile file;
  driver::save(driver::build(mixed_module()), file.path());
  std::string first = file.read();
  driver::Built loaded = driver::load(file.path());
  fs::remove(file.path());
  driver::save(loaded, file.path());
  EXPECT_EQ(file.read(), first);
}

// Makes the checksums of a changed file right again: the header is magic[8], version, the layout, offset, bytes and
// checksum of program, code and weights, and its own checksum.
void reseal(std::string& bytes) {
  auto number = [&](size_t at) -> uint64_t {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  };
  auto put = [&](size_t at, uint64_t value) { std::memcpy(bytes.data() + at, &value, sizeof(value)); };
  std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  constexpr size_t sections = 20;
  constexpr size_t end = sections + 9 * 8;
  for (size_t at : {sections, sections + 24})
    if (number(at) <= all.size() && number(at + 8) <= all.size() - number(at))
      put(at + 16, program::checksum(all.subspan(number(at), number(at + 8))));
  put(end, program::checksum(all.first(end)));
}

enum class Outcome { loaded, refused };

Outcome try_file(const TemporaryFile& file, std::string_view bytes) {
  file.write(bytes);
  MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(int64_t{1} << 26));
  try {
    driver::Built built = driver::load(file.path());
    program::disassemble(built.executable->program);
    return Outcome::loaded;
  } catch (const Error&) {
    return Outcome::refused;
  }
}

TEST(Artifacts, TruncatedFilesAreRefused) {
  TemporaryFile file;
  driver::save(driver::build(mixed_module()), file.path());
  std::string whole = file.read();
  for (size_t length = 0; length < whole.size(); ++length) {
    std::string part = whole.substr(0, length);
    ASSERT_EQ(try_file(file, part), Outcome::refused) << length;
    if (length % 16 != 0 || length < 100) continue;
    reseal(part);
    ASSERT_EQ(try_file(file, part), Outcome::refused) << length;
  }
  EXPECT_EQ(try_file(file, whole), Outcome::loaded);
}

TEST(Artifacts, ChangedFilesAreRefusedOrLoaded) {
  TemporaryFile file;
  driver::save(driver::build(mixed_module()), file.path());
  std::string whole = file.read();
  std::mt19937_64 random(5);
  int mutations = 2000;
  if (const char* given = std::getenv("SELKIE_MUTATIONS")) mutations = std::atoi(given);  // a soak
  size_t text = whole.find("func @main");
  ASSERT_NE(text, std::string::npos);
  int refused = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string changed = whole;
    // Between the header and the code is the program; half of the changes are numbers that are wrong by little.
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      size_t at = random() % 8 == 0 ? random() % whole.size() : 4096 + random() % (text - 4096 + 500);
      char& byte = changed[at % whole.size()];
      byte = static_cast<char>(random() % 2 == 0 ? random() : static_cast<uint64_t>(byte) + random() % 5 - 2);
    }
    try_file(file, changed);
    reseal(changed);
    refused += try_file(file, changed) == Outcome::refused;
  }
  EXPECT_GT(refused, mutations / 2);
}

TEST(Artifacts, CodeForAnotherMachineIsRefused) {
  TemporaryFile file;
  driver::save(driver::build(mixed_module()), file.path());
  auto error_with = [&](auto change) {
    program::Artifact artifact = program::read_artifact(file.path());
    TemporaryFile other;
    change(artifact);
    program::write_artifact(artifact, other.path());
    try {
      driver::load(other.path());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(error_with([](program::Artifact&) {}), "");
#if defined(__x86_64__)
  EXPECT_TRUE(has(error_with([](auto& a) { a.image.isa = "neon"; }), "has code for neon, which this machine does not"));
#endif
  EXPECT_TRUE(has(error_with([](auto& a) { a.image.isa = "vax"; }), "'vax', which is not known"));
  EXPECT_TRUE(has(error_with([](auto& a) { a.layout = "other"; }), "weights packed for other"));
  EXPECT_TRUE(has(error_with([](auto& a) { a.host_entries[0].node = 99; }), "has no operator"));
  EXPECT_TRUE(has(error_with([](auto& a) { a.host_entries.pop_back(); }), "host calls"));
  EXPECT_TRUE(has(error_with([](auto& a) { a.host_module = "func"; }), "operators in"));
  EXPECT_TRUE(has(error_with([](auto& a) { a.signature = "func @main() -> () { return }"; }), "inputs and outputs"));
}

}  // namespace
}  // namespace selkie::tests
