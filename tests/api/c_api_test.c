/* The C API as a C program uses and misuses it. Arguments: the folder of the models, and one to write to. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selkie/selkie.h"

static const char* models;
static const char* scratch;
static int failures = 0;

#define CHECK(condition)                                                                                        \
  do {                                                                                                          \
    if (!(condition)) {                                                                                         \
      printf("%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, #condition, selkie_last_error()); \
      ++failures;                                                                                               \
    }                                                                                                           \
  } while (0)

#define CHECK_FAILS(call, status, text)                                                                      \
  do {                                                                                                       \
    selkie_status got = (call);                                                                              \
    if (got != (status) || strstr(selkie_last_error(), text) == NULL) {                                      \
      printf("%s:%d: %s gives '%s: %s', not '%s: %s'\n", __FILE__, __LINE__, #call, selkie_status_name(got), \
             selkie_last_error(), selkie_status_name(status), text);                                         \
      ++failures;                                                                                            \
    }                                                                                                        \
  } while (0)

static char* path_in(const char* folder, const char* name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static selkie_options plain_options(void) {
  selkie_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.no_cache = 1;
  options.compile_threads = 1;
  return options;
}

static selkie_model* compiled(const char* name) {
  selkie_options options = plain_options();
  selkie_model* model = NULL;
  CHECK(selkie_compile_file(path_in(models, name), &options, &model) == SELKIE_OK);
  return model;
}

static selkie_context* context_of(const selkie_model* model) {
  selkie_context_options options = {0, 0, 0};
  selkie_context* context = NULL;
  options.size = sizeof options;
  options.threads = 1;
  CHECK(selkie_context_new(model, &options, &context) == SELKIE_OK);
  return context;
}

static selkie_value* floats(const float* data, int64_t count) {
  selkie_value* value = NULL;
  CHECK(selkie_value_view(SELKIE_F32, &count, 1, data, (size_t)count * sizeof *data, &value) == SELKIE_OK);
  return value;
}

static selkie_value* words(const char* const* texts, int64_t count) {
  selkie_value* value = NULL;
  CHECK(selkie_value_strings(&count, 1, texts, NULL, (size_t)count, &value) == SELKIE_OK);
  return value;
}

/* One run, in order. */
static selkie_status run(selkie_context* context, const selkie_value* a, const selkie_value* b, selkie_value** outputs,
                         size_t count) {
  const selkie_value* inputs[2];
  inputs[0] = a;
  inputs[1] = b;
  return selkie_run(context, NULL, inputs, b == NULL ? 1 : 2, NULL, outputs, count);
}

static int holds(const selkie_value* value, const float* expected, size_t count) {
  return selkie_value_dtype(value) == SELKIE_F32 && selkie_value_count(value) == count &&
         memcmp(selkie_value_data(value), expected, count * sizeof *expected) == 0;
}

static void free_values(selkie_value** values, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) {
    selkie_value_free(values[i]);
    values[i] = NULL;
  }
}

static void test_versions_and_names(void) {
  CHECK(strcmp(selkie_version(), "0.1.0") == 0);
  CHECK(selkie_version_number() == SELKIE_VERSION_MAJOR * 10000 + SELKIE_VERSION_MINOR * 100 + SELKIE_VERSION_PATCH);
  CHECK(strcmp(selkie_status_name(SELKIE_BUFFER_TOO_SMALL), "buffer too small") == 0);
  CHECK(strcmp(selkie_status_name(-7), "unknown status") == 0 && strcmp(selkie_status_name(99), "unknown status") == 0);
  CHECK(strcmp(selkie_dtype_name(SELKIE_F32), "f32") == 0 && strcmp(selkie_dtype_name(SELKIE_I2), "i2") == 0);
  CHECK(selkie_dtype_name(0) == NULL && selkie_dtype_name(27) == NULL && selkie_dtype_name(-1) == NULL);
  CHECK(selkie_dtype_size(SELKIE_I64) == 8 && selkie_dtype_size(SELKIE_STRING) == 0 && selkie_dtype_size(77) == 0);
}

static void test_ports_and_counts(void) {
  selkie_model* model = compiled("add.sk");
  selkie_port port;
  selkie_model_info info;
  memset(&port, 0, sizeof port);
  port.size = sizeof port;
  CHECK(selkie_model_input_count(model) == 1 && selkie_model_output_count(model) == 1);
  CHECK(selkie_model_input(model, 0, &port) == SELKIE_OK);
  CHECK(strcmp(port.name, "x") == 0 && strcmp(port.type, "f32[N, 2]") == 0);
  CHECK(port.kind == SELKIE_TENSOR && port.dtype == SELKIE_F32 && port.rank == 2);
  CHECK(port.dims[0] == -1 && port.dims[1] == 2 && strcmp(port.dim_names[0], "N") == 0);
  CHECK_FAILS(selkie_model_output(model, 1, &port), SELKIE_INVALID_ARGUMENT, "there is no output 1: the model has 1");
  memset(&info, 0, sizeof info);
  info.size = sizeof info;
  CHECK(selkie_model_describe(model, &info) == SELKIE_OK && info.nodes == 1 && info.kernels == 1);
  selkie_model_free(model);
}

static void test_runs_by_name_and_order(void) {
  selkie_model* model = compiled("two.sk");
  selkie_context* context = context_of(model);
  const float a[] = {1, 2, 3}, b[] = {3, 5, 7}, sum[] = {4, 7, 10}, difference[] = {-2, -3, -4};
  selkie_value *x = floats(a, 3), *y = floats(b, 3), *outputs[2] = {NULL, NULL};
  const char* names[] = {"b", "a"};
  const char* wanted[] = {"difference"};
  const selkie_value* inputs[2];
  inputs[0] = y;
  inputs[1] = x;
  CHECK(run(context, x, y, outputs, 2) == SELKIE_OK);
  CHECK(holds(outputs[0], sum, 3) && holds(outputs[1], difference, 3));
  free_values(outputs, 2);
  CHECK(selkie_run(context, names, inputs, 2, wanted, outputs, 1) == SELKIE_OK);
  CHECK(holds(outputs[0], difference, 3));
  free_values(outputs, 1);

  /* Errors leave no outputs, and a context that runs again. */
  wanted[0] = "product";
  CHECK_FAILS(selkie_run(context, names, inputs, 2, wanted, outputs, 1), SELKIE_BAD_INPUT,
              "the model has no output 'product'; its outputs are 'sum', 'difference'");
  names[0] = "c";
  CHECK_FAILS(selkie_run(context, names, inputs, 2, NULL, outputs, 2), SELKIE_BAD_INPUT,
              "the model has no input 'c'; its inputs are 'a', 'b'");
  names[0] = "a";
  CHECK_FAILS(selkie_run(context, names, inputs, 2, NULL, outputs, 2), SELKIE_BAD_INPUT, "input 'a' is given twice");
  names[0] = NULL;
  CHECK_FAILS(selkie_run(context, names, inputs, 2, NULL, outputs, 2), SELKIE_INVALID_ARGUMENT,
              "name of an input is NULL");
  CHECK_FAILS(selkie_run(context, NULL, inputs, 1, NULL, outputs, 2), SELKIE_BAD_INPUT,
              "input 'b' (f32[N]) is missing");
  CHECK_FAILS(run(context, x, y, outputs, 1), SELKIE_INVALID_ARGUMENT,
              "the model has 2 outputs, but there are places for 1");
  CHECK(outputs[0] == NULL && outputs[1] == NULL);
  CHECK(run(context, x, y, outputs, 2) == SELKIE_OK && holds(outputs[0], sum, 3));
  free_values(outputs, 2);
  selkie_value_free(x);
  selkie_value_free(y);
  selkie_context_free(context);
  selkie_model_free(model);
}

static void test_wrong_inputs(void) {
  selkie_model* model = compiled("add.sk");
  selkie_context* context = context_of(model);
  const int64_t dims[] = {1, 2};
  const int64_t numbers[] = {1, 2};
  const float elements[] = {1, 2}, expected[] = {2, 3};
  selkie_value *good = NULL, *value = NULL, *output = NULL;
  CHECK(selkie_value_view(SELKIE_I64, dims, 2, numbers, sizeof numbers, &value) == SELKIE_OK);
  CHECK_FAILS(run(context, value, NULL, &output, 1), SELKIE_BAD_INPUT, "input 'x' must be of type f32, but is of i64");
  selkie_value_free(value);
  value = floats(elements, 2);
  CHECK_FAILS(run(context, value, NULL, &output, 1), SELKIE_BAD_INPUT, "input 'x' must have rank 2 (f32[N, 2])");
  selkie_value_free(value);
  CHECK(selkie_value_view(SELKIE_F32, dims + 1, 0, elements, sizeof elements, &value) == SELKIE_OK);
  CHECK(selkie_value_rank(value) == 0 && selkie_value_dims(value) != NULL && selkie_value_count(value) == 1);
  CHECK_FAILS(run(context, value, NULL, &output, 1), SELKIE_BAD_INPUT, "input 'x' must have rank 2");
  selkie_value_free(value);
  CHECK(selkie_value_sequence(NULL, 0, &value) == SELKIE_OK);
  CHECK_FAILS(run(context, value, NULL, &output, 1), SELKIE_BAD_INPUT, "input 'x'");
  selkie_value_free(value);
  CHECK_FAILS(run(context, NULL, NULL, &output, 1), SELKIE_BAD_INPUT, "input 'x' (f32[N, 2]) is missing");
  CHECK(output == NULL);

  /* After all that, and after an empty input, the context runs. */
  CHECK(selkie_value_copy(SELKIE_F32, dims, 2, elements, sizeof elements, &good) == SELKIE_OK);
  CHECK(run(context, good, NULL, &output, 1) == SELKIE_OK && holds(output, expected, 2));
  selkie_value_free(output);
  {
    const int64_t empty[] = {0, 2};
    CHECK(selkie_value_view(SELKIE_F32, empty, 2, NULL, 0, &value) == SELKIE_OK);
    CHECK(run(context, value, NULL, &output, 1) == SELKIE_OK && selkie_value_count(output) == 0);
    CHECK(selkie_value_dims(output)[1] == 2);
    selkie_value_free(output);
    selkie_value_free(value);
  }
  selkie_value_free(good);
  selkie_context_free(context);
  selkie_model_free(model);
}

static void test_buffers(void) {
  selkie_model* model = compiled("two.sk");
  selkie_context* context = context_of(model);
  const float a[] = {1, 2, 3}, sum[] = {2, 4, 6}, zeros[] = {0, 0, 0};
  float first[3] = {9, 9, 9}, second[3] = {9, 9, 9};
  selkie_value *x = floats(a, 3), *buffers[2] = {NULL, NULL}, *output = NULL;
  const selkie_value* inputs[2];
  inputs[0] = inputs[1] = x;
  CHECK(selkie_value_buffer(first, sizeof first, &buffers[0]) == SELKIE_OK);
  CHECK(selkie_value_buffer(second, 8, &buffers[1]) == SELKIE_OK);
  CHECK(selkie_value_kind(buffers[0]) == SELKIE_NONE && selkie_value_dims(buffers[0]) == NULL);
  CHECK_FAILS(selkie_run_into(context, NULL, inputs, 2, NULL, buffers, 2), SELKIE_BUFFER_TOO_SMALL,
              "output 'difference' is f32[3] and needs 12 bytes, but its buffer has 8");
  CHECK(first[0] == 9 && second[0] == 9);
  CHECK(selkie_value_bytes(buffers[1]) == 12 && selkie_value_data(buffers[0]) == NULL);
  CHECK_FAILS(run(context, buffers[0], x, buffers, 0), SELKIE_INVALID_ARGUMENT, "places for 0");
  inputs[0] = buffers[0];
  {
    selkie_value* outputs[2];
    CHECK_FAILS(selkie_run(context, NULL, inputs, 2, NULL, outputs, 2), SELKIE_INVALID_ARGUMENT, "was not written");
  }
  inputs[0] = x;
  selkie_value_free(buffers[1]);
  CHECK(selkie_value_buffer(second, sizeof second, &buffers[1]) == SELKIE_OK);
  CHECK(selkie_run_into(context, NULL, inputs, 2, NULL, buffers, 2) == SELKIE_OK);
  CHECK(memcmp(first, sum, sizeof sum) == 0 && memcmp(second, zeros, sizeof zeros) == 0);
  CHECK(selkie_value_data(buffers[0]) == (const void*)first && holds(buffers[0], sum, 3));
  /* A buffer that was written is an input like any other. */
  {
    const char* wanted[] = {"sum"};
    const float twice[] = {3, 6, 9};
    inputs[0] = buffers[0];
    CHECK(selkie_run(context, NULL, inputs, 2, wanted, &output, 1) == SELKIE_OK && holds(output, twice, 3));
    selkie_value_free(output);
    inputs[0] = x;
  }
  output = buffers[1];
  buffers[1] = buffers[0];
  CHECK_FAILS(selkie_run_into(context, NULL, inputs, 2, NULL, buffers, 2), SELKIE_INVALID_ARGUMENT,
              "buffer 1 is given twice");
  buffers[1] = x;
  CHECK_FAILS(selkie_run_into(context, NULL, inputs, 2, NULL, buffers, 2), SELKIE_INVALID_ARGUMENT,
              "buffer 1 is a value that has no memory of the caller's");
  buffers[1] = NULL;
  CHECK_FAILS(selkie_run_into(context, NULL, inputs, 2, NULL, buffers, 2), SELKIE_INVALID_ARGUMENT, "a buffer is NULL");
  CHECK_FAILS(selkie_value_read(buffers[0], second, 4), SELKIE_BUFFER_TOO_SMALL,
              "has 12 bytes, but there is room for 4");
  CHECK(selkie_value_read(buffers[0], second, sizeof second) == SELKIE_OK && second[2] == 6);
  selkie_value_free(output);
  selkie_value_free(buffers[0]);
  selkie_value_free(x);
  selkie_context_free(context);
  selkie_model_free(model);
}

/* Results outlive all that they came from, and do not follow changes of the inputs. */
static void test_results_are_the_callers(void) {
  selkie_options options = plain_options();
  selkie_model *model = compiled("same.sk"), *loaded = NULL;
  selkie_context* context;
  float* elements = malloc(2 * sizeof *elements);
  const float given[] = {5, 6}, weights[] = {1, 2};
  selkie_value *x, *outputs[3];
  char* file = path_in(scratch, "same.selkie");
  CHECK(selkie_model_save(model, file) == SELKIE_OK);
  CHECK(selkie_load_file(file, &options, &loaded) == SELKIE_OK);
  selkie_model_free(model);
  context = context_of(loaded);
  selkie_model_free(loaded);
  memcpy(elements, given, sizeof given);
  x = floats(elements, 2);
  CHECK(run(context, x, NULL, outputs, 3) == SELKIE_OK);
  selkie_value_free(x);
  selkie_context_free(context);
  elements[0] = 7;
  free(elements);
  remove(path_in(scratch, "same.selkie"));
  CHECK(holds(outputs[0], given, 2) && holds(outputs[1], given, 2) && holds(outputs[2], weights, 2));
  free_values(outputs, 3);
}

static void test_structures(void) {
  selkie_model* model = compiled("append.sk");
  selkie_context* context = context_of(model);
  const float a[] = {1, 2}, b[] = {3};
  selkie_value *x = floats(a, 2), *y = floats(b, 1), *sequence = NULL, *output = NULL, *item = NULL;
  const selkie_value* items[1];
  selkie_port port;
  items[0] = x;
  memset(&port, 0, sizeof port);
  port.size = sizeof port;
  CHECK(selkie_model_input(model, 0, &port) == SELKIE_OK);
  CHECK(port.kind == SELKIE_SEQUENCE && port.rank == -1 && port.dtype == 0);
  CHECK(selkie_value_sequence(items, 1, &sequence) == SELKIE_OK);
  CHECK(selkie_value_kind(sequence) == SELKIE_SEQUENCE && selkie_value_count(sequence) == 1);
  CHECK(run(context, sequence, y, &output, 1) == SELKIE_OK);
  selkie_value_free(sequence);
  CHECK(selkie_value_count(output) == 2);
  CHECK(selkie_value_item(output, 1, &item) == SELKIE_OK);
  CHECK_FAILS(selkie_value_item(output, 2, &sequence), SELKIE_INVALID_ARGUMENT, "there is no item 2: the value has 2");
  CHECK(selkie_value_data(output) == NULL && selkie_value_bytes(output) == 0 && selkie_value_dtype(output) == 0);
  selkie_value_free(output);
  CHECK(holds(item, b, 1));
  CHECK_FAILS(selkie_value_item(item, 0, &output), SELKIE_INVALID_ARGUMENT, "has no items");
  selkie_value_free(item);
  selkie_context_free(context);
  selkie_model_free(model);

  model = compiled("has.sk");
  context = context_of(model);
  CHECK(run(context, x, NULL, &output, 1) == SELKIE_OK && *(const uint8_t*)selkie_value_data(output) == 1);
  selkie_value_free(output);
  CHECK(run(context, NULL, NULL, &output, 1) == SELKIE_OK && *(const uint8_t*)selkie_value_data(output) == 0);
  selkie_value_free(output);
  CHECK(selkie_value_optional(NULL, &item) == SELKIE_OK && selkie_value_count(item) == 0);
  CHECK(run(context, item, NULL, &output, 1) == SELKIE_OK && *(const uint8_t*)selkie_value_data(output) == 0);
  CHECK_FAILS(selkie_value_item(item, 0, &sequence), SELKIE_INVALID_ARGUMENT, "the optional has no item 0");
  selkie_value_free(output);
  selkie_value_free(item);
  selkie_context_free(context);
  selkie_model_free(model);
  selkie_value_free(x);
  selkie_value_free(y);
}

static void test_strings_and_maps(void) {
  selkie_model* model = compiled("words.sk");
  selkie_context* context = context_of(model);
  const char* texts[] = {"se", "la"};
  const char* others[] = {"lkie", ""};
  const float numbers[] = {1, 2}, row[] = {1, 2};
  selkie_value *a = words(texts, 2), *b = words(others, 2), *output = NULL, *map = NULL, *values = floats(numbers, 2);
  const char* text = NULL;
  size_t length = 0;
  int64_t three = 3;
  CHECK(run(context, a, b, &output, 1) == SELKIE_OK);
  CHECK(selkie_value_string(output, 0, &text, &length) == SELKIE_OK && length == 6 && strcmp(text, "selkie") == 0);
  CHECK_FAILS(selkie_value_string(output, 2, &text, &length), SELKIE_INVALID_ARGUMENT, "there is no string 2");
  CHECK(text == NULL && length == 0 && selkie_value_data(output) == NULL);
  CHECK_FAILS(selkie_value_read(output, &three, 8), SELKIE_INVALID_ARGUMENT, "selkie_value_string");
  CHECK_FAILS(selkie_value_strings(&three, 1, texts, NULL, 2, &map), SELKIE_INVALID_ARGUMENT,
              "has 3 elements, but 2 texts");
  CHECK_FAILS(selkie_value_copy(SELKIE_STRING, &three, 1, texts, 99, &map), SELKIE_INVALID_ARGUMENT,
              "selkie_value_strings");
  selkie_value_free(output);
  {
    selkie_value* buffer = NULL;
    const selkie_value* inputs[2];
    inputs[0] = a;
    inputs[1] = b;
    CHECK(selkie_value_buffer(&three, 8, &buffer) == SELKIE_OK);
    CHECK_FAILS(selkie_run_into(context, NULL, inputs, 2, NULL, &buffer, 1), SELKIE_INVALID_ARGUMENT,
                "output 'c' is str[2], which selkie_run gives");
    selkie_value_free(buffer);
  }
  selkie_context_free(context);
  selkie_model_free(model);

  model = compiled("look_up.sk");
  context = context_of(model);
  texts[0] = "b";
  texts[1] = "a";
  selkie_value_free(a);
  a = words(texts, 2);
  CHECK(selkie_value_map(a, values, &map) == SELKIE_OK && selkie_value_count(map) == 2);
  CHECK(run(context, map, NULL, &output, 1) == SELKIE_OK && holds(output, row, 2));
  selkie_value_free(output);
  CHECK(selkie_value_item(map, 0, &output) == SELKIE_OK);
  CHECK(selkie_value_string(output, 0, &text, &length) == SELKIE_OK && strcmp(text, "a") == 0);
  selkie_value_free(output);
  CHECK_FAILS(selkie_value_item(map, 2, &output), SELKIE_INVALID_ARGUMENT, "no item 2");
  CHECK_FAILS(selkie_value_map(values, values, &output), SELKIE_INVALID_ARGUMENT, "keys are f32");
  selkie_value_free(b);
  texts[1] = "b";
  b = words(texts, 2);
  CHECK_FAILS(selkie_value_map(b, values, &output), SELKIE_INVALID_ARGUMENT, "a map has a key twice");
  selkie_value_free(map);
  selkie_value_free(a);
  selkie_value_free(b);
  selkie_value_free(values);
  selkie_context_free(context);
  selkie_model_free(model);
}

static void test_nothing_and_garbage(void) {
  selkie_model* model = compiled("mask.sk");
  selkie_context* context = context_of(model);
  selkie_model* none = (selkie_model*)&failures;
  selkie_value *value = (selkie_value*)&failures, *output = NULL;
  selkie_context* no_context = (selkie_context*)&failures;
  const uint8_t bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  int64_t dims[] = {4, -1};
  char* text = NULL;
  CHECK_FAILS(selkie_compile_file(NULL, NULL, &none), SELKIE_INVALID_ARGUMENT, "path is NULL");
  CHECK(none == NULL);
  CHECK_FAILS(selkie_compile_file("x", NULL, NULL), SELKIE_INVALID_ARGUMENT, "model is NULL");
  CHECK_FAILS(selkie_compile_file("no such file.onnx", NULL, &none), SELKIE_NOT_FOUND,
              "cannot open 'no such file.onnx'");
  CHECK_FAILS(selkie_compile_bytes(NULL, 4, NULL, &none), SELKIE_INVALID_ARGUMENT, "bytes is NULL");
  CHECK_FAILS(selkie_compile_bytes(bytes, sizeof bytes, NULL, &none), SELKIE_BAD_MODEL, "");
  CHECK_FAILS(selkie_load_file(path_in(models, "add.sk"), NULL, &none), SELKIE_BAD_MODEL, "is not a compiled model");
  CHECK_FAILS(selkie_model_save(model, "no/such/folder/x.selkie"), SELKIE_BAD_MODEL, "no/such/folder");
  CHECK_FAILS(selkie_model_save(NULL, "x"), SELKIE_INVALID_ARGUMENT, "model is NULL");
  CHECK_FAILS(selkie_context_new(NULL, NULL, &no_context), SELKIE_INVALID_ARGUMENT, "model is NULL");
  CHECK(no_context == NULL);
  CHECK_FAILS(selkie_context_new((selkie_model*)context, NULL, &no_context), SELKIE_INVALID_ARGUMENT,
              "model is no selkie_model, or was freed");
  CHECK_FAILS(selkie_run(NULL, NULL, NULL, 0, NULL, NULL, 0), SELKIE_INVALID_ARGUMENT, "context is NULL");
  CHECK_FAILS(selkie_run(context, NULL, NULL, 1, NULL, &output, 1), SELKIE_INVALID_ARGUMENT, "inputs is NULL");
  CHECK_FAILS(selkie_run(context, NULL, NULL, 0, NULL, NULL, 1), SELKIE_INVALID_ARGUMENT, "outputs is NULL");
  CHECK_FAILS(selkie_value_view(99, dims, 1, bytes, 4, &value), SELKIE_INVALID_ARGUMENT,
              "there is no type of elements 99");
  CHECK(value == NULL);
  CHECK_FAILS(selkie_value_view(SELKIE_U8, NULL, 1, bytes, 4, &value), SELKIE_INVALID_ARGUMENT, "dims is NULL");
  CHECK_FAILS(selkie_value_view(SELKIE_U8, dims, 2, bytes, 4, &value), SELKIE_INVALID_ARGUMENT, "is negative");
  CHECK_FAILS(selkie_value_view(SELKIE_U8, dims, (size_t)-1, bytes, 4, &value), SELKIE_INVALID_ARGUMENT,
              "is more than 64");
  CHECK_FAILS(selkie_value_view(SELKIE_F64, dims, 1, bytes, 17, &value), SELKIE_INVALID_ARGUMENT,
              "a tensor f64[4] has 4 elements of 8 bytes each, but only 17 bytes are given");
  CHECK_FAILS(selkie_value_view(SELKIE_U8, dims, 1, NULL, 4, &value), SELKIE_INVALID_ARGUMENT, "data is NULL");
  CHECK_FAILS(selkie_value_view(SELKIE_F32, dims, 1, (const char*)dims + 1, 16, &value), SELKIE_INVALID_ARGUMENT,
              "not aligned to 4 bytes");
  dims[1] = INT64_MAX;
  CHECK_FAILS(selkie_value_copy(SELKIE_U8, dims, 2, bytes, 4, &value), SELKIE_INVALID_ARGUMENT, "too many elements");
  CHECK_FAILS(selkie_value_view(SELKIE_F64, dims + 1, 1, bytes, 4, &value), SELKIE_INVALID_ARGUMENT,
              "only 4 bytes are given");
  CHECK_FAILS(selkie_value_sequence(NULL, 1, &value), SELKIE_INVALID_ARGUMENT, "items is NULL");
  CHECK_FAILS(selkie_value_item(NULL, 0, &value), SELKIE_INVALID_ARGUMENT, "value is NULL");
  CHECK_FAILS(selkie_model_explain(model, NULL, NULL, 0, 17, &text), SELKIE_INVALID_ARGUMENT, "there is no form 17");
  CHECK_FAILS(selkie_model_explain(model, NULL, NULL, 0, SELKIE_TEXT, NULL), SELKIE_INVALID_ARGUMENT, "text is NULL");
  CHECK(selkie_value_kind(NULL) == SELKIE_NONE && selkie_value_data(NULL) == NULL && selkie_value_count(NULL) == 0);
  CHECK(selkie_value_kind((selkie_value*)model) == SELKIE_NONE && selkie_model_input_count(NULL) == 0);
  selkie_model_free(NULL);
  selkie_context_free(NULL);
  selkie_value_free(NULL);
  selkie_value_free((selkie_value*)model);
  selkie_text_free(NULL);

  /* A byte that is no boolean. */
  CHECK(selkie_value_view(SELKIE_BOOL, dims, 1, bytes, 4, &value) == SELKIE_OK);
  CHECK_FAILS(run(context, value, NULL, &output, 1), SELKIE_BAD_INPUT, "input 'm' has a byte 2, which is no bool");
  selkie_value_free(value);
  dims[0] = 2;
  CHECK(selkie_value_view(SELKIE_BOOL, dims, 1, bytes, 2, &value) == SELKIE_OK);
  CHECK(run(context, value, NULL, &output, 1) == SELKIE_OK && memcmp(selkie_value_data(output), "\1\0", 2) == 0);
  selkie_value_free(output);
  selkie_value_free(value);
  selkie_context_free(context);
  selkie_model_free(model);
}

static void test_nesting_is_bounded(void) {
  selkie_value* value = NULL;
  selkie_status status = selkie_value_optional(NULL, &value);
  int depth = 0;
  while (status == SELKIE_OK && depth < 1000) {
    selkie_value* outer = NULL;
    const selkie_value* items[1];
    items[0] = value;
    status = selkie_value_sequence(items, 1, &outer);
    if (status != SELKIE_OK) break;
    selkie_value_free(value);
    value = outer;
    ++depth;
  }
  CHECK(depth == 64);
  selkie_value_free(value);
}

/* A program that was compiled with an older or a newer header. */
static void test_sizes_of_structs(void) {
  struct {
    selkie_options options;
    uint64_t newer;
  } larger;
  selkie_options options = plain_options();
  selkie_model* model = NULL;
  selkie_port port;
  const char* dims[] = {"N in 1..4"};
  memset(&larger, 0, sizeof larger);
  larger.options = options;
  larger.options.size = sizeof larger;
  CHECK(selkie_compile_file(path_in(models, "add.sk"), &larger.options, &model) == SELKIE_OK);
  selkie_model_free(model);
  larger.newer = 1;
  CHECK_FAILS(selkie_compile_file(path_in(models, "add.sk"), &larger.options, &model), SELKIE_INVALID_ARGUMENT,
              "selkie_options has fields that version 0.1.0 of the library does not know");
  options.size = 0;
  CHECK_FAILS(selkie_compile_file(path_in(models, "add.sk"), &options, &model), SELKIE_INVALID_ARGUMENT,
              "the size of selkie_options is 0, but must be sizeof(selkie_options)");
  options.size = (size_t)-8;
  CHECK_FAILS(selkie_compile_file(path_in(models, "add.sk"), &options, &model), SELKIE_INVALID_ARGUMENT, "the size of");

  /* What lies behind an older struct is not read: these would be errors. */
  options = plain_options();
  options.dims = dims;
  options.dims_count = 1;
  options.size = offsetof(selkie_options, trip_limit);
  options.trip_limit = -1;
  options.time_limit = -1;
  CHECK(selkie_compile_file(path_in(models, "add.sk"), &options, &model) == SELKIE_OK);
  options.size = sizeof options;
  {
    selkie_model* other = NULL;
    CHECK_FAILS(selkie_compile_file(path_in(models, "add.sk"), &options, &other), SELKIE_INVALID_ARGUMENT,
                "trip_limit is -1, but must not be negative");
  }
  /* Nor is it written. */
  memset(&port, 0x55, sizeof port);
  port.size = offsetof(selkie_port, rank);
  CHECK(selkie_model_input(model, 0, &port) == SELKIE_OK);
  CHECK(port.dtype == SELKIE_F32 && port.rank == 0x5555555555555555 && port.size == offsetof(selkie_port, rank));
  port.size = 4;
  CHECK_FAILS(selkie_model_input(model, 0, &port), SELKIE_INVALID_ARGUMENT, "the size of selkie_port is 4");
  CHECK_FAILS(selkie_model_input(model, 0, NULL), SELKIE_INVALID_ARGUMENT, "there is no selkie_port to fill");
  selkie_model_free(model);
}

static int logged = 0;
static void count_lines(void* data, int32_t level, const char* message) {
  if (level >= SELKIE_LOG_INFO && strlen(message) > 0) ++*(int*)data;
}

static void test_limits_facts_and_log(void) {
  selkie_options options = plain_options();
  selkie_model* model = NULL;
  selkie_context* context;
  const float small[] = {0.5F, 1}, large[] = {60, 1};
  selkie_value *x = floats(small, 2), *y = floats(large, 2), *outputs[2];
  const char* dims[] = {"N in 2..3"};
  options.trip_limit = 3;
  options.log = count_lines;
  options.log_data = &logged;
  CHECK(selkie_compile_file(path_in(models, "grow.sk"), &options, &model) == SELKIE_OK && logged == 1);
  context = context_of(model);
  CHECK_FAILS(run(context, x, NULL, outputs, 2), SELKIE_LIMIT_REACHED, "the loop has run 3 trips, which is the limit");
  CHECK(run(context, y, NULL, outputs, 2) == SELKIE_OK && selkie_value_count(outputs[1]) == 1);
  free_values(outputs, 2);
  selkie_context_free(context);
  selkie_model_free(model);

  options = plain_options();
  options.memory_limit = 4;
  options.dims = dims;
  options.dims_count = 1;
  CHECK(selkie_compile_file(path_in(models, "two.sk"), &options, &model) == SELKIE_OK);
  context = context_of(model);
  CHECK_FAILS(run(context, x, y, outputs, 2), SELKIE_LIMIT_REACHED, "its limit is 4");
  selkie_value_free(x);
  selkie_value_free(y);
  x = floats(small, 1);
  CHECK_FAILS(run(context, x, x, outputs, 2), SELKIE_BAD_INPUT, "do not satisfy the model's constraints");
  selkie_value_free(x);
  selkie_context_free(context);
  selkie_model_free(model);

  dims[0] = "M in 2..3";
  CHECK_FAILS(selkie_compile_file(path_in(models, "two.sk"), &options, &model), SELKIE_BAD_MODEL, "M");
  dims[0] = NULL;
  CHECK_FAILS(selkie_compile_file(path_in(models, "two.sk"), &options, &model), SELKIE_INVALID_ARGUMENT,
              "dims is NULL");
  options.dims = NULL;
  CHECK_FAILS(selkie_compile_file(path_in(models, "two.sk"), &options, &model), SELKIE_INVALID_ARGUMENT,
              "dims is NULL");
}

static void test_reports(void) {
  selkie_model* model = compiled("two.sk");
  selkie_size size = {"N", 8};
  char* text = NULL;
  CHECK(selkie_model_explain(model, NULL, &size, 1, SELKIE_TEXT, &text) == SELKIE_OK &&
        strstr(text, "target cpu") != NULL);
  selkie_text_free(text);
  CHECK(selkie_model_explain(model, "s", NULL, 0, SELKIE_TEXT, &text) == SELKIE_OK &&
        strstr(text, "dim 0 = N") != NULL);
  selkie_text_free(text);
  CHECK(selkie_model_explain(model, NULL, NULL, 0, SELKIE_PAGE, &text) == SELKIE_OK && strstr(text, "<html") != NULL);
  selkie_text_free(text);
  CHECK(selkie_model_plan(model, &size, 1, SELKIE_JSON, &text) == SELKIE_OK && text[0] == '{');
  selkie_text_free(text);
  CHECK(selkie_model_plan(model, &size, 1, SELKIE_PAGE, &text) == SELKIE_OK && strstr(text, "<svg") != NULL);
  selkie_text_free(text);
  CHECK_FAILS(selkie_model_explain(model, "nothing", NULL, 0, SELKIE_TEXT, &text), SELKIE_BAD_MODEL,
              "the model has no node or value 'nothing'");
  size.name = "M";
  CHECK_FAILS(selkie_model_plan(model, &size, 1, SELKIE_TEXT, &text), SELKIE_BAD_MODEL, "no input has a size 'M'");
  CHECK(text == NULL);
  selkie_model_free(model);
}

/* Each thread has a context and a last error of its own. */
struct Job {
  const selkie_model* model;
  float start;
  int right;
};

static void* run_often(void* data) {
  struct Job* job = data;
  selkie_context* context = context_of(job->model);
  int i;
  for (i = 0; i < 200; ++i) {
    float a[7], sum[7];
    int64_t count = i % 7 + 1, j;
    selkie_value *x, *outputs[2];
    const char* wrong[1];
    const selkie_value* inputs[1];
    for (j = 0; j < count; ++j) a[j] = job->start + (float)j, sum[j] = 2 * a[j];
    x = floats(a, count);
    wrong[0] = job->start > 0 ? "plus" : "minus";
    if (run(context, x, x, outputs, 2) == SELKIE_OK && holds(outputs[0], sum, (size_t)count)) ++job->right;
    free_values(outputs, 2);
    inputs[0] = x;
    if (selkie_run(context, wrong, inputs, 1, NULL, outputs, 2) == SELKIE_BAD_INPUT &&
        strstr(selkie_last_error(), wrong[0]) != NULL)
      ++job->right;
    selkie_value_free(x);
  }
  selkie_context_free(context);
  return NULL;
}

static void test_threads(void) {
  selkie_model* model = compiled("two.sk");
  struct Job jobs[2];
  pthread_t threads[2];
  int i;
  for (i = 0; i < 2; ++i) {
    jobs[i].model = model;
    jobs[i].start = i == 0 ? 100.0F : -100.0F;
    jobs[i].right = 0;
    CHECK(pthread_create(&threads[i], NULL, run_often, &jobs[i]) == 0);
  }
  for (i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK(jobs[0].right == 400 && jobs[1].right == 400);
  selkie_model_free(model);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    printf("usage: %s MODELS SCRATCH\n", argv[0]);
    return 2;
  }
  models = argv[1];
  scratch = argv[2];
  CHECK(strcmp(selkie_last_error(), "") == 0);
  test_versions_and_names();
  test_ports_and_counts();
  test_runs_by_name_and_order();
  test_wrong_inputs();
  test_buffers();
  test_results_are_the_callers();
  test_structures();
  test_strings_and_maps();
  test_nothing_and_garbage();
  test_nesting_is_bounded();
  test_sizes_of_structs();
  test_limits_facts_and_log();
  test_reports();
  test_threads();
  if (failures == 0) printf("the C API: all as expected\n");
  return failures == 0 ? 0 : 1;
}
