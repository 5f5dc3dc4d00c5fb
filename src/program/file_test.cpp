// Programs as files: what is written is read back, and what is not well formed is refused with its reason.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "program/checksum.h"
#include "program/fields.h"
#include "program/file.h"
#include "program/verify.h"

namespace selkie::program {
namespace {

using Storage = RegisterInfo::Storage;

// y = kernel(x, c): one of each that is needed for it, and of each kind of call one that is not made.
Program small_program() {
  Program p;
  p.inputs = {{.name = "x", .is_tensor = true, .dtype = DType::f32, .rank = 1}};
  p.outputs = {"y"};
  p.slots = 3;
  p.entry_slots = 1;
  p.registers = {
      {.name = "x", .storage = Storage::input, .is_tensor = true, .dims = {0}},
      {.name = "c", .storage = Storage::constant, .is_tensor = true, .dims = {1}, .constant = 0},
      {.name = "t", .storage = Storage::arena, .is_tensor = true, .dims = {0}, .bytes = 2, .first = 2, .last = 4},
      {.name = "v", .storage = Storage::view, .is_tensor = true, .dims = {0}, .viewed = 2},
      {.name = "y", .storage = Storage::heap, .is_tensor = true, .dims = {0}, .bytes = 2},
  };
  p.steps = {{.op = SizeStep::Op::constant, .to = 1, .value = 4},
             {.op = SizeStep::Op::multiply, .to = 2, .a = 0, .b = 1}};
  p.checks = {{.equal = false, .a = 1, .b = 0, .text = "{a} is more than {b}"}};
  p.index_checks = {};
  p.launches = {{.kernel = 0, .buffers = {2, 0, 1}, .sizes = {0}, .range = 0, .node = "first"},
                {.kernel = 0, .buffers = {4, 3, 1}, .sizes = {0}, .range = {}, .node = "second"}};
  p.products = {{.a = {.value = 0, .row_stride = 1, .column_stride = 2, .batch_strides = {1}},
                 .b = {.value = 0, .row_stride = 1, .column_stride = 2, .batch_strides = {2}},
                 .c = {.value = 2, .row_stride = 1, .column_stride = 2, .batch_strides = {0}},
                 .m = 0,
                 .n = 1,
                 .k = 2,
                 .batch = {1},
                 .bias = 1,
                 .epilogue = 1,
                 .node = "product"}};
  p.convolutions = {{.input = 0,
                     .output = 2,
                     .weights = 1,
                     .winograd = 1,
                     .bias = 1,
                     .grouped = true,
                     .input_channels = 4,
                     .output_channels = 6,
                     .groups = 2,
                     .kernel = {1, 2, 3},
                     .stride = {4, 5, 6},
                     .dilation = {7, 8, 9},
                     .batch = 1,
                     .input_dims = {0, 1, 2},
                     .output_dims = {2, 1, 0},
                     .pads = {1, 1, 2},
                     .epilogue = 1,
                     .node = "convolution"}};
  p.attentions = {{.query = {.value = 0, .strides = {0, 1, 2}},
                   .key = {.value = 1, .strides = {2, 1, 0}},
                   .value = {.value = 2, .strides = {1, 1, 1}},
                   .output = {.value = 3, .strides = {2, 2, 2}},
                   .batch = 0,
                   .heads = 1,
                   .key_heads = 2,
                   .queries = 0,
                   .keys = 1,
                   .depth = 2,
                   .columns = 0,
                   .mask = 1,
                   .mask_strides = {0, 1, 2, 1},
                   .scale = 0.125f,
                   .causal = true,
                   .masked_score = -1000.0f,
                   .node = "attention"}};
  p.recurrents = {{.cell = Recurrent::Cell::lstm,
                   .directions = 2,
                   .input = 5,
                   .hidden = 7,
                   .reversed = true,
                   .linear_before_reset = true,
                   .batch_first = true,
                   .activations = {"tanh", "relu"},
                   .steps = 1,
                   .batch = 2,
                   .x = 0,
                   .weights = 1,
                   .peepholes = true,
                   .initial_h = 0,
                   .initial_c = 1,
                   .y = 2,
                   .y_h = 3,
                   .y_c = 4,
                   .node = "recurrent"}};
  p.host_calls = {
      {.operands = {0, no_register}, .results = {4, no_register}, .symbols = {{"N", 0}}, .node = "host", .why = "why"}};
  p.binds = {{.value = 0, .dims = {{0, 1}}, .elements = {{1, 2}}, .negative = {{2, 0}}}};
  p.code = {{.op = Opcode::sizes, .a = 0, .b = 2},
            {.op = Opcode::check, .a = 0},
            {.op = Opcode::launch, .a = 0},
            {.op = Opcode::allocate, .a = 4},
            {.op = Opcode::launch, .a = 1}};
  p.parameters = {0};
  p.results = {4};
  std::vector<float> elements{1, 2, 3, 4};
  p.constants = {Tensor::from<float>(DType::f32, {4}, elements)};
  p.kernels = {"k0"};
  return p;
}

Artifact small_artifact() {
  std::vector<std::string> words{"a", "", "longer than a short string can be"};
  Program program = small_program();
  return {.program = program,
          .image = {.isa = "none", .code = std::vector<std::byte>(100, std::byte{7}), .entries = {{"k0", 16}}},
          .layout = "generic",
          .signature = "func @main() -> () {\n  return\n}\n",
          .nodes = 3,
          .host_module = "text",
          .host_entries = {{.node = 1, .captured = {"a", "b"}}},
          .host_constants = {{.name = "shared", .tensor = program.constants[0]},
                             {.name = "words", .tensor = Tensor::from<std::string>(DType::str, {3}, words)},
                             {.name = "none", .tensor = Tensor(DType::i64, {0, 2})}}};
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("selkie_files_{}", getpid());
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "model").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string error() const {
    try {
      read_artifact(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  std::filesystem::path folder_;
  std::string path_;
};

std::string written(const Program& program) {
  Writer writer;
  writer(program);
  return std::string(writer.bytes());
}

TEST_F(Files, WhatIsWrittenIsReadBack) {
  Artifact artifact = small_artifact();
  uint64_t size = write_artifact(artifact, path_);
  EXPECT_EQ(size, std::filesystem::file_size(path_));
  EXPECT_TRUE(is_artifact(path_));
  Artifact back = read_artifact(path_);
  EXPECT_EQ(written(back.program), written(artifact.program));
  EXPECT_EQ(disassemble(back.program), disassemble(artifact.program));
  ASSERT_EQ(back.program.constants.size(), 1u);
  EXPECT_EQ(back.program.constants[0].values<float>()[3], 4);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(back.program.constants[0].bytes()) % 64, 0u);
  EXPECT_EQ(back.image.isa, "none");
  EXPECT_EQ(back.image.code, artifact.image.code);
  EXPECT_EQ(back.image.entries, artifact.image.entries);
  EXPECT_EQ(back.layout, "generic");
  EXPECT_EQ(back.signature, artifact.signature);
  EXPECT_EQ(back.nodes, 3u);
  EXPECT_EQ(back.host_module, "text");
  ASSERT_EQ(back.host_entries.size(), 1u);
  EXPECT_EQ(back.host_entries[0].captured, artifact.host_entries[0].captured);
  ASSERT_EQ(back.host_constants.size(), 3u);
  // A tensor that two names share is in the file once.
  EXPECT_EQ(back.host_constants[0].tensor.bytes(), back.program.constants[0].bytes());
  EXPECT_EQ(back.host_constants[1].tensor.values<std::string>()[2], "longer than a short string can be");
  EXPECT_EQ(back.host_constants[2].tensor.dims(), (Dims{0, 2}));
}

TEST_F(Files, NothingIsLeftOfAFileThatCannotBeWritten) {
  EXPECT_THROW(write_artifact(small_artifact(), (folder_ / "nowhere" / "model").string()), Error);
  std::filesystem::create_directory(path_);
  EXPECT_THROW(write_artifact(small_artifact(), path_), Error);
  std::filesystem::remove(path_);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Files, APipeOrADeviceIsNotReplaced) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW(write_artifact(small_artifact(), path_), Error);
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_FALSE(is_artifact(path_));
}

TEST_F(Files, OtherFilesAreRefused) {
  write("this is no model");
  EXPECT_FALSE(is_artifact(path_));
  EXPECT_NE(error().find("is not a compiled model"), std::string::npos);
  EXPECT_FALSE(is_artifact((folder_ / "nowhere").string()));
  write_artifact(small_artifact(), path_);
  std::string other = bytes();
  other[8] = 77;  // the version
  write(other);
  EXPECT_NE(error().find("another version of Selkie"), std::string::npos);
}

TEST_F(Files, EveryTruncationIsRefused) {
  write_artifact(small_artifact(), path_);
  std::string whole = bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    write(std::string_view(whole).substr(0, length));
    ASSERT_NE(error(), "") << length;
  }
  write(whole + '\0');
  EXPECT_NE(error(), "");
}

TEST_F(Files, EveryChangedByteIsRefusedOrHarmless) {
  write_artifact(small_artifact(), path_);
  std::string whole = bytes();
  size_t harmless = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    // Pages between sections are all alike.
    if (whole[at] == 0 && at % 16 != 0) continue;
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    write(changed);
    if (!error().empty()) continue;
    ++harmless;
    ASSERT_EQ(written(read_artifact(path_).program), written(small_program())) << at;
    if (whole[at] != 0) EXPECT_THROW(check_weights(path_), Error) << at;
  }
  EXPECT_GT(harmless, 0u);  // elements of constants, and what lies between the sections
  write(whole);
  EXPECT_NO_THROW(check_weights(path_));
}

// Makes the checksums of a changed program and of the header right again.
void reseal(std::string& file) {
  constexpr size_t section = 20;  // offset, bytes and checksum of the program
  constexpr size_t end = 92;
  uint64_t place[2];
  std::memcpy(place, file.data() + section, sizeof(place));
  std::span<const std::byte> all = std::as_bytes(std::span(file));
  if (place[0] > all.size() || place[1] > all.size() - place[0]) return;
  uint64_t sum = checksum(all.subspan(place[0], place[1]));
  std::memcpy(file.data() + section + sizeof(place), &sum, sizeof(sum));
  sum = checksum(all.first(end));
  std::memcpy(file.data() + end, &sum, sizeof(sum));
}

TEST_F(Files, ChangesThatChecksumsDoNotFindAreRefusedOrRead) {
  write_artifact(small_artifact(), path_);
  std::string whole = bytes();
  constexpr size_t program_at = 4096;
  uint64_t program_bytes = 0;
  std::memcpy(&program_bytes, whole.data() + 28, sizeof(program_bytes));
  std::mt19937_64 random(1);
  int mutations = 2000;
  if (const char* given = std::getenv("SELKIE_MUTATIONS")) mutations = std::atoi(given);  // a soak
  int refused = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string changed = whole;
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      bool in_header = random() % 16 == 0;
      char& byte = changed[in_header ? 12 + random() % 80 : program_at + random() % program_bytes];
      byte = static_cast<char>(random() % 2 == 0 ? random() : static_cast<uint64_t>(byte) + random() % 5 - 2);
    }
    reseal(changed);
    write(changed);
    try {
      disassemble(read_artifact(path_).program);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, mutations / 2);
}

struct Broken {
  std::string_view message;
  std::function<void(Program&)> damage;
};

TEST(Verifier, SaysWhatIsWrong) {
  EXPECT_NO_THROW(verify(small_program()));
  const Broken cases[] = {
      {"sizes are too many", [](Program& p) { p.slots = UINT32_MAX; }},
      {"are known at entry", [](Program& p) { p.entry_slots = 4; }},
      {"size 3 of 3", [](Program& p) { p.steps[0].to = 3; }},
      {"size 9 of 3", [](Program& p) { p.registers[0].dims[0] = 9; }},
      {"size 7 of 3", [](Program& p) { p.registers[2].bytes = 7; }},
      {"lives from 5 to 4", [](Program& p) { p.registers[2].first = 5; }},
      {"lives from 2 to 99", [](Program& p) { p.registers[2].last = 99; }},
      {"is used at 4, but lives from 2 to 3", [](Program& p) { p.registers[2].last = 3; }},
      {"constant 1 of 1", [](Program& p) { p.registers[1].constant = 1; }},
      {"not what its constant is", [](Program& p) { p.registers[1].dtype = DType::i32; }},
      {"a view of itself", [](Program& p) { p.registers[3].viewed = 3; }},
      {"register 50 of 5", [](Program& p) { p.registers[3].viewed = 50; }},
      {"must be a tensor", [](Program& p) { p.registers[2].is_tensor = false; }},
      {"not a text of a check", [](Program& p) { p.checks[0].text = "{a} {c}"; }},
      {"not a text of a check", [](Program& p) { p.checks[0].text = "{"; }},
      {"size 3 of 3", [](Program& p) { p.checks[0].b = 3; }},
      {"holds no indices", [](Program& p) { p.index_checks = {{.indices = 0, .extent = 0, .node = ""}}; }},
      {"kernel 1 of 1", [](Program& p) { p.launches[0].kernel = 1; }},
      {"a kernel is given 65 buffers", [](Program& p) { p.launches[0].buffers.resize(65); }},
      {"and 65 sizes", [](Program& p) { p.launches[0].sizes.resize(65); }},
      {"a kernel is given 0 buffers", [](Program& p) { p.launches[0].buffers.clear(); }},
      {"register 4294967295 of 5", [](Program& p) { p.launches[0].buffers[0] = no_register; }},
      {"over 1 axes has 0 strides", [](Program& p) { p.products[0].a.batch_strides.clear(); }},
      {"a packed factor must be a constant", [](Program& p) { p.products[0].packed = true; }},
      {"launch 2 of 2", [](Program& p) { p.products[0].epilogue = 2; }},
      {"must be of f32", [](Program& p) { p.registers[4].dtype = DType::f64; }},
      {"weights must be a constant", [](Program& p) { p.convolutions[0].weights = 0; }},
      {"a convolution of 4 to 6 channels", [](Program& p) { p.convolutions[0].groups = 0; }},
      {"a convolution of 4 to 6 channels", [](Program& p) { p.convolutions[0].stride[1] = -1; }},
      {"a recurrent layer of 3 directions", [](Program& p) { p.recurrents[0].directions = 3; }},
      {"lengths must be of i32", [](Program& p) { p.recurrents[0].lengths = 0; }},
      {"no place for a host value", [](Program& p) { p.host_calls[0].results[0] = 0; }},
      {"size 3 of 3", [](Program& p) { p.binds[0].negative[0].second = 3; }},
      {"1 inputs have 0 parameters", [](Program& p) { p.parameters.clear(); }},
      {"is no input", [](Program& p) { p.parameters[0] = 1; }},
      {"is not what input 'x' is", [](Program& p) { p.inputs[0].rank = 2; }},
      {"is not what input 'x' is", [](Program& p) { p.inputs[0].dtype = DType::i8; }},
      {"size steps 0 to 3 of 2", [](Program& p) { p.code[0].b = 3; }},
      {"check 1 of 1", [](Program& p) { p.code[1].a = 1; }},
      {"launch 2 of 2", [](Program& p) { p.code[2].a = 2; }},
      {"is not on the heap", [](Program& p) { p.code[3].a = 2; }},
      {"before it is set", [](Program& p) { p.code[3] = {.op = Opcode::sizes}; }},
      {"before it is set", [](Program& p) { p.code.push_back({.op = Opcode::release, .a = 4}); }},
      {"lives from 2 to 4", [](Program& p) { p.binds[0].value = 2, p.code[1] = {.op = Opcode::bind, .a = 0}; }},
      {"product 1 of 1", [](Program& p) { p.code[2] = {.op = Opcode::product, .a = 1}; }},
      {"host call 1 of 1", [](Program& p) { p.code[2] = {.op = Opcode::host, .a = 1}; }},
      {"1 outputs have 2 results", [](Program& p) { p.results.push_back(0); }},
  };
  for (const Broken& broken : cases) {
    Program program = small_program();
    broken.damage(program);
    try {
      verify(program);
      ADD_FAILURE() << "not refused: " << broken.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(broken.message), std::string::npos) << error.what();
    }
  }
}

// A loop that halves its state, in one of two places by turns, and appends it to what grows; and a branch.
Program loop_program() {
  Program p;
  p.inputs = {{.name = "x", .is_tensor = true, .rank = 1}};
  p.outputs = {"y", "z"};
  p.slots = 4;  // dim, trip, whether there is another, bytes
  p.entry_slots = 1;
  p.registers = {
      {.name = "x", .storage = Storage::input, .is_tensor = true, .dims = {0}},
      {.name = "s", .storage = Storage::state, .is_tensor = true, .dims = {0}, .bytes = 3},
      {.name = "t",
       .storage = Storage::arena,
       .is_tensor = true,
       .dims = {0},
       .alternates = true,
       .bytes = 3,
       .first = 3,
       .last = 16},
      {.name = "y", .storage = Storage::heap, .is_tensor = true, .dims = {0}},
      {.name = "z", .storage = Storage::heap, .is_tensor = true, .dims = {1, 0}},
      {.name = "i",
       .storage = Storage::arena,
       .is_tensor = true,
       .dtype = DType::i64,
       .bytes = 3,
       .first = 5,
       .last = 5},
  };
  p.steps = {{.op = SizeStep::Op::less, .to = 2, .a = 1, .b = 0}, {.op = SizeStep::Op::add, .to = 1, .a = 1, .b = 2}};
  p.kernels = {"k"};
  p.launches = {{.kernel = 0, .buffers = {2, 1}, .sizes = {0}, .range = {}, .node = "half"}};
  p.growths = {{.from = 2, .to = 4, .empty = {1, 0}, .node = "loop"}};
  p.code = {{.op = Opcode::move, .a = 1, .b = 0},
            {.op = Opcode::grow, .a = 0},
            {.op = Opcode::sizes, .a = 0, .b = 1},
            {.op = Opcode::branch, .a = 11, .b = 2},
            {.op = Opcode::trip, .a = 1},
            {.op = Opcode::scalar, .a = 5, .b = 1},
            {.op = Opcode::alternate, .a = 2},
            {.op = Opcode::launch, .a = 0},
            {.op = Opcode::append, .a = 0},
            {.op = Opcode::move, .a = 1, .b = 2},
            {.op = Opcode::jump, .a = 2},
            {.op = Opcode::collect, .a = 0},
            {.op = Opcode::branch, .a = 15, .b = 1},
            {.op = Opcode::move, .a = 3, .b = 0},
            {.op = Opcode::jump, .a = 16},
            {.op = Opcode::move, .a = 3, .b = 1}};
  p.parameters = {0};
  p.results = {3, 4};
  return p;
}

TEST(Verifier, SaysWhatIsWrongWithControlFlow) {
  EXPECT_NO_THROW(verify(loop_program()));
  const Broken cases[] = {
      {"a jump to 17 of 16", [](Program& p) { p.code[14].a = 17; }},
      {"size 4 of 4", [](Program& p) { p.code[3].b = 4; }},
      {"size 4 of 4", [](Program& p) { p.code[4].a = 4; }},
      {"has no two places", [](Program& p) { p.code[6].a = 5; }},
      {"has no two places", [](Program& p) { p.registers[3].alternates = true; }},
      {"is no scalar", [](Program& p) { p.code[5].a = 2; }},
      {"cannot be moved to", [](Program& p) { p.code[9].a = 0; }},
      {"cannot become", [](Program& p) { p.code[9].b = 5; }},
      {"growth 1 of 1", [](Program& p) { p.code[8].a = 1; }},
      {"is not on the heap", [](Program& p) { p.growths[0].to = 2; }},
      {"size 9 of 4", [](Program& p) { p.growths[0].empty[0] = 9; }},
      {"register 6 of 6", [](Program& p) { p.growths[0].from = 6; }},
      {"item 0 of 0", [](Program& p) { p.code[8] = {.op = Opcode::item, .a = 0}; }},
      {"replacement 0 of 0", [](Program& p) { p.code[8] = {.op = Opcode::replace, .a = 0}; }},
      {"cannot be changed", [](Program& p) { p.replacements = {{.to = 0, .indices = 0, .slices = 0, .node = {}}}; }},
      {"does not hold tuples", [](Program& p) { p.replacements = {{.to = 1, .indices = 0, .slices = 1, .node = {}}}; }},
      {"slice copy 0 of 0", [](Program& p) { p.code[8] = {.op = Opcode::copy_slice, .a = 0}; }},
      {"size 9 of 4",
       [](Program& p) {
         p.registers[1].storage = Storage::view, p.registers[1].viewed = 0, p.registers[1].offset = 9;
       }},
      // Set on one path only, not before the first trip, or not any more in the second.
      {"register 3 is used at 16 before it is set", [](Program& p) { p.code[13] = {.op = Opcode::sizes}; }},
      {"register 1 is used at 7 before it is set", [](Program& p) { p.code[0] = {.op = Opcode::sizes}; }},
      {"register 1 is used at 7 before it is set", [](Program& p) { p.code[9] = {.op = Opcode::release, .a = 1}; }},
      // What a state points to must live as long as it is used.
      {"register 2 is used at 15, but lives from 3 to 14", [](Program& p) { p.registers[2].last = 14; }},
  };
  for (const Broken& broken : cases) {
    Program program = loop_program();
    broken.damage(program);
    try {
      verify(program);
      ADD_FAILURE() << "not refused: " << broken.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(broken.message), std::string::npos) << error.what();
    }
  }
}

// With a product of bytes, and a register of each dtype that it has.
Program integer_program() {
  Program p = small_program();
  p.constants.push_back(Tensor(DType::i8, {4}));
  auto constant = static_cast<uint32_t>(p.constants.size() - 1);
  p.registers.push_back({.name = "a", .is_tensor = true, .dtype = DType::u8, .dims = {0}, .bytes = 2});
  p.registers.push_back({.name = "w",
                         .storage = Storage::constant,
                         .is_tensor = true,
                         .dtype = DType::i8,
                         .dims = {1},
                         .constant = constant});
  p.registers.push_back({.name = "s", .is_tensor = true, .dtype = DType::i32, .dims = {0}, .bytes = 2});
  p.integer_products = {{.input = 5,
                         .output = 7,
                         .weights = 6,
                         .zero = 5,
                         .input_channels = 4,
                         .output_channels = 6,
                         .groups = 2,
                         .kernel = {1, 2, 3},
                         .stride = {4, 5, 6},
                         .dilation = {7, 8, 9},
                         .batch = 1,
                         .input_dims = {0, 1, 2},
                         .output_dims = {2, 1, 0},
                         .pads = {1, 1, 2},
                         .epilogue = 1,
                         .node = "integer"}};
  return p;
}

TEST(Verifier, SaysWhatIsWrongWithIntegerProducts) {
  EXPECT_NO_THROW(verify(integer_program()));
  const Broken cases[] = {
      {"must be of bytes and give 32 bits", [](Program& p) { p.integer_products[0].input = 0; }},
      {"must be of bytes and give 32 bits", [](Program& p) { p.integer_products[0].output = 5; }},
      {"must be a constant of bytes", [](Program& p) { p.integer_products[0].weights = 5; }},
      {"must be a constant of bytes", [](Program& p) { p.integer_products[0].weights = 1; }},
      {"of the type of what they belong to", [](Program& p) { p.integer_products[0].zero = 6; }},
      {"a convolution of 4 to 6 channels", [](Program& p) { p.integer_products[0].groups = 3; }},
      {"size 3 of 3", [](Program& p) { p.integer_products[0].pads[2] = 3; }},
      {"launch 2 of 2", [](Program& p) { p.integer_products[0].epilogue = 2; }},
      {"integer product 1 of 1", [](Program& p) { p.code[2] = {.op = Opcode::integer, .a = 1}; }},
      {"before it is set", [](Program& p) { p.code[2] = {.op = Opcode::integer, .a = 0}; }},
      // Packed factors of products may be small floats, others not.
      {"must be of f32", [](Program& p) { p.registers[7].dtype = DType::f16, p.products[0].b.value = 7; }},
  };
  for (const Broken& broken : cases) {
    Program program = integer_program();
    broken.damage(program);
    try {
      verify(program);
      ADD_FAILURE() << "not refused: " << broken.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(broken.message), std::string::npos) << error.what();
    }
  }
}

TEST(Archive, FalseNumbersAreRefused) {
  auto read = [](auto value, std::string_view bytes) { Reader(std::as_bytes(std::span(bytes)), "test").read(value); };
  using namespace std::string_view_literals;
  EXPECT_NO_THROW(read(bool{}, "\1"sv));
  EXPECT_THROW(read(bool{}, "\2"sv), Error);
  EXPECT_THROW(read(Opcode{}, "\x63"sv), Error);
  EXPECT_THROW(read(DType{}, "\0"sv), Error);
  EXPECT_THROW(read(std::string{}, "\xff\xff\xff\xff\xff\xff\xff\xff"sv), Error);
  EXPECT_THROW(read(std::vector<uint32_t>{}, "\2\0\0\0\0\0\0\0abcd"sv), Error);
  EXPECT_THROW(read(std::vector<Instruction>{}, "\2\0\0\0\0\0\0\0\0"sv), Error);
}

TEST(Checksum, DependsOnEveryByteAndOnTheLength) {
  std::string text(100, 'x');
  uint64_t whole = checksum(std::as_bytes(std::span(text)));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] ^= 1;
    EXPECT_NE(checksum(std::as_bytes(std::span(changed))), whole) << i;
  }
  std::string zeros(64, '\0');
  EXPECT_NE(checksum(std::as_bytes(std::span(zeros))), checksum(std::as_bytes(std::span(zeros).first(63))));
}

}  // namespace
}  // namespace selkie::program
