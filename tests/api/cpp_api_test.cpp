// The C++ header as a program uses it, beside what the examples show. Arguments: the folder of the models, one to
// write to, and an ONNX model.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <type_traits>

#include "selkie/selkie.hpp"

namespace {

int failures = 0;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                               \
    }                                                                           \
  } while (false)

template <class Body>
void check_throws(selkie_status status, std::string_view text, Body body) {
  try {
    body();
  } catch (const selkie::Error& error) {
    bool fits = error.status() == status && std::string_view(error.what()).find(text) != std::string_view::npos;
    if (fits) return;
    std::printf("'%s' (%s) is thrown, not '%s'\n", error.what(), selkie_status_name(error.status()), text.data());
    ++failures;
    return;
  }
  std::printf("'%s' is not thrown\n", text.data());
  ++failures;
}

static_assert(!std::is_copy_constructible_v<selkie::Model> && std::is_nothrow_move_constructible_v<selkie::Model>);
static_assert(!std::is_copy_constructible_v<selkie::Context> && std::is_nothrow_move_constructible_v<selkie::Context>);
static_assert(!std::is_copy_constructible_v<selkie::Value> && std::is_nothrow_move_constructible_v<selkie::Value>);
static_assert(selkie::dtype_of<const std::int8_t>() == SELKIE_I8 && selkie::dtype_of<std::uint64_t>() == SELKIE_U64);
static_assert(selkie::dtype_of<bool>() == SELKIE_BOOL && selkie::dtype_of<long long>() == SELKIE_I64);

const selkie::Options plain{.no_cache = true};

void test_buffers(const std::string& models) {
  selkie::Model model = selkie::Model::compile(models + "/add.sk", plain);
  selkie::Context context(model, 1);
  std::vector<float> x{1, 2, 3, 4}, y(4), few(1);
  selkie::Value buffer = selkie::Value::buffer(y), small = selkie::Value::buffer(few);
  context.run_into({selkie::Value::view(x, {2, 2})}, buffer);
  CHECK(y == (std::vector<float>{2, 3, 4, 5}) && buffer.dims()[0] == 2 && buffer.data<float>()[3] == 5);
  check_throws(SELKIE_BUFFER_TOO_SMALL, "needs 16 bytes",
               [&] { context.run_into({selkie::Value::view(x, {2, 2})}, small); });
  CHECK(small.bytes() == 16);
  check_throws(SELKIE_INVALID_ARGUMENT, "not written", [&] { small.data<float>(); });
  check_throws(SELKIE_INVALID_ARGUMENT, "another type", [&] { buffer.data<double>(); });
  CHECK(model.run({selkie::Value::copy({5.0F, 6.0F}, {1, 2})})[0].data<float>()[1] == 7);
}

void test_structures(const std::string& models) {
  selkie::Context append(selkie::Model::compile(models + "/append.sk", plain), 1);  // which outlives the model
  std::vector<float> x{1, 2};
  selkie::Value items[] = {selkie::Value::view(x, {2})};
  selkie::Value t = std::move(append.run({selkie::Value::sequence(items), selkie::Value::view(x, {2})})[0]);
  CHECK(t.kind() == SELKIE_SEQUENCE && t.count() == 2 && t.item(1).data<float>()[1] == 2);
  check_throws(SELKIE_INVALID_ARGUMENT, "there is no item 2", [&] { t.item(2); });

  selkie::Context has(selkie::Model::compile(models + "/has.sk", plain), 1);
  CHECK(has.run({selkie::Value::optional(items[0])})[0].data<bool>()[0]);
  CHECK(!has.run({selkie::Value::optional()})[0].data<bool>()[0]);

  std::vector<std::string> texts{"b", "a"};
  selkie::Context words(selkie::Model::compile(models + "/words.sk", plain), 1);
  selkie::Value strings = selkie::Value::strings(texts, {2});
  CHECK(words.run({{"a", strings}, {"b", strings}}, {"c"})[0].text(0) == "bb");

  selkie::Context look_up(selkie::Model::compile(models + "/look_up.sk", plain), 1);
  CHECK(look_up.run({selkie::Value::map(strings, items[0])})[0].data<float>()[0] == 1);
}

void test_models(const std::string& models, const std::string& scratch) {
  std::vector<std::string> lines;
  selkie::Options options{.dims = {"N in 1..4"}, .no_cache = true};
  options.log = [&](int, std::string_view line) { lines.emplace_back(line); };
  selkie::Model model = selkie::Model::compile(models + "/add.sk", options);
  CHECK(lines.size() == 1 && model.info().kernels == 1);
  selkie::Port input = model.inputs()[0];
  CHECK(input.has_rank && input.dims == (selkie::Dims{-1, 2}) && input.dim_names[0] == "N");
  CHECK(model.outputs()[0].type == "f32[N, 2]");
  CHECK(model.explain({{"N", 2}}).find("target cpu") != std::string::npos);
  CHECK(model.explain_node("y").find("dim 0 = N") != std::string::npos);
  CHECK(model.plan({}, SELKIE_JSON).starts_with("{"));

  std::string file = scratch + "/add.selkie";
  model.save(file);
  selkie::Model loaded = selkie::Model::load(file, plain);
  model = std::move(loaded);
  CHECK(model.run({selkie::Value::copy({1.0F, 2.0F}, {1, 2})})[0].count() == 2);
  check_throws(SELKIE_BAD_INPUT, "do not satisfy", [&] { model.run({selkie::Value::copy<float>({}, {0, 2})}); });
  check_throws(SELKIE_BAD_MODEL, "is compiled", [&] { model.plan(); });
  check_throws(SELKIE_NOT_FOUND, "cannot open", [&] { selkie::Model::load(file + ".not", plain); });
}

// An ONNX model in memory; its reports need its bytes.
void test_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
  auto compile = [&](bool keep) {
    return selkie::Model::compile(std::as_bytes(std::span(bytes)), {.no_cache = true, .keep_source = keep});
  };
  selkie::Model kept = compile(true), other = compile(false);
  bytes.assign(bytes.size(), 0);
  CHECK(kept.outputs()[0].type == "f32[B, 4]");
  CHECK(kept.plan({{"B", 1}, {"S", 8}}).starts_with("sizes: B = 1, S = 8"));
  check_throws(SELKIE_BAD_MODEL, "keep_source", [&] { other.plan(); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    test_buffers(argv[1]);
    test_structures(argv[1]);
    test_models(argv[1], argv[2]);
    test_bytes(argv[3]);
  } catch (const std::exception& error) {
    std::printf("thrown: %s\n", error.what());
    ++failures;
  }
  if (failures == 0) std::printf("the C++ API: all as expected\n");
  return failures == 0 ? 0 : 1;
}
