// Models of the C API: compiling, loading, saving, what they declare, and reports.
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "api/failure.h"
#include "api/handles.h"
#include "api/reports.h"
#include "driver/artifact.h"
#include "driver/cache.h"
#include "program/file.h"

namespace selkie::api {
namespace {

std::vector<std::string> texts(const char* const* given, size_t count, const char* argument) {
  std::vector<std::string> out;
  for (const char* text : require_list(given, count, argument)) out.push_back(require_text(text, argument));
  return out;
}

int64_t limit(int64_t given, int64_t otherwise, const char* option) {
  if (given < 0) misuse("{} is {}, but must not be negative", option, given);
  return given > 0 ? given : otherwise;
}

std::string cache_folder(const selkie_options& given) {
  if (given.no_cache != 0) return {};
  return given.cache_folder == nullptr ? driver::user_cache_folder() : driver::usable_cache_folder(given.cache_folder);
}

driver::Options driver_options(const selkie_options& given) {
  driver::Options options;
  options.compiler.exact = given.exact != 0;
  options.compiler.without = texts(given.without, given.without_count, "without");
  options.threads = require_threads(given.compile_threads, "compile_threads");
  options.cache_folder = cache_folder(given);
  if (given.cache_bytes > 0) options.cache_bytes = given.cache_bytes;
  interp::Options& host = options.host;
  host.seed = given.seed;
  host.memory_limit = limit(given.memory_limit, 0, "memory_limit");
  host.limits.loop_trips = limit(given.trip_limit, host.limits.loop_trips, "trip_limit");
  host.limits.sequence_items = limit(given.item_limit, host.limits.sequence_items, "item_limit");
  if (!(given.time_limit >= 0)) misuse("time_limit is {}, but must not be negative", given.time_limit);
  host.limits.seconds = given.time_limit;
  return options;
}

Source source_of(const selkie_options& given) {
  return {.path = {},
          .folder = given.data_folder == nullptr ? "." : given.data_folder,
          .facts = texts(given.dims, given.dims_count, "dims"),
          .options = driver_options(given)};
}

selkie_kind kind_of(const ir::Type& type) {
  using Kind = ir::Type::Kind;
  switch (type.kind) {
    case Kind::tensor:
      return SELKIE_TENSOR;
    case Kind::seq:
      return SELKIE_SEQUENCE;
    case Kind::opt:
      return SELKIE_OPTIONAL;
    case Kind::map:
      return SELKIE_MAP;
    case Kind::tuple:
      return SELKIE_TUPLE;
    default:
      return SELKIE_NONE;
  }
}

Port make_port(const std::string& name, const ir::Type& type) {
  Port port{.name = name, .type = type, .type_text = to_string(type)};
  if (!type.is_tensor() || !type.dims) return port;
  for (sym::Expr dim : *type.dims) {
    port.dims.push_back(dim.constant().value_or(-1));
    port.dim_texts.push_back(sym::to_string(dim));
  }
  for (const std::string& text : port.dim_texts) port.dim_names.push_back(text.c_str());
  return port;
}

selkie_port to_c(const Port& port) {
  bool has_dtype = port.type.is_tensor() || port.type.kind == ir::Type::Kind::map;
  bool has_rank = port.type.is_tensor() && port.type.dims;
  return {.size = 0,
          .name = port.name.c_str(),
          .type = port.type_text.c_str(),
          .kind = kind_of(port.type),
          .dtype = has_dtype ? static_cast<selkie_dtype>(port.type.dtype) : 0,
          .rank = has_rank ? static_cast<int64_t>(port.dims.size()) : -1,
          .dims = port.dims.data(),
          .dim_names = port.dim_names.data()};
}

void log_model(const selkie_options& given, const CompiledModel& model, double milliseconds) {
  if (given.log == nullptr) return;
  const driver::Built& built = model.built;
  std::string line =
      fmt::format("'{}': {} nodes, {} kernels, {} host calls, {} bytes of code{}, in {:.1f} ms",
                  model.source.path.empty() ? "model" : model.source.path, built.nodes, built.kernels, built.host_calls,
                  built.image.code.size(), built.code_is_cached ? " from the cache" : "", milliseconds);
  given.log(given.log_data, SELKIE_LOG_INFO, line.c_str());
  for (const program::HostCall& call : built.executable->program.host_calls) {
    line = fmt::format("{} runs on the host: {}", call.node, call.why);
    given.log(given.log_data, SELKIE_LOG_WARNING, line.c_str());
  }
}

// `bytes` is null for a file.
selkie_model* make_model(std::string path, std::string_view bytes, const selkie_options& given) {
  auto model = std::make_shared<CompiledModel>();
  model->source = source_of(given);
  model->source.path = std::move(path);
  model->source.bytes = bytes;
  auto start = std::chrono::steady_clock::now();
  model->built = in_phase(Phase::model, [&] { return build(model->source); });
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (given.keep_source != 0) model->kept_bytes = bytes;
  model->source.bytes = given.keep_source != 0 ? std::string_view(model->kept_bytes) : std::string_view();
  const ir::Function& main = model->built.declared->main();
  model->declared = std::make_unique<DeclaredInputs>(model->built.declared);
  for (const auto& parameter : main.body.parameters)
    model->inputs.push_back(make_port(parameter->name, parameter->type));
  for (size_t i = 0; i < main.result_names.size(); ++i)
    model->outputs.push_back(make_port(main.result_names[i], main.result_types[i]));
  log_model(given, *model, took.count());
  return new selkie_model(std::move(model));
}

std::string require_file(const char* path) {
  std::string name = require_text(path, "path");
  std::error_code error;
  if (name.empty() || !std::filesystem::exists(name, error))
    throw Refusal(SELKIE_NOT_FOUND, fmt::format("cannot open '{}': No such file or directory", name));
  return name;
}

driver::Sizes sizes_of(const selkie_size* given, size_t count) {
  driver::Sizes sizes;
  for (const selkie_size& size : require_list(given, count, "sizes"))
    sizes.emplace_back(require_text(size.name, "the name of a size"), size.size);
  return sizes;
}

char* new_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

std::string title_of(const Source& source) { return source.path.empty() ? "model" : source.path; }

void require_form(selkie_form form) {
  if (form != SELKIE_TEXT && form != SELKIE_JSON && form != SELKIE_PAGE) misuse("there is no form {}", form);
}

std::string explanation(const Source& source, const char* node, const driver::Sizes& sizes, selkie_form form) {
  require_form(form);
  if (node != nullptr && form != SELKIE_TEXT) misuse("a node is explained as text only");
  if (node != nullptr) return explain_node(source, node);
  if (form == SELKIE_PAGE) return explain_page(source, title_of(source));
  Explanation made = explain(source, sizes);
  return form == SELKIE_JSON ? made.json : made.text;
}

std::string memory_plan(const Source& source, const driver::Sizes& sizes, selkie_form form) {
  require_form(form);
  Plan made = plan(source, sizes, title_of(source));
  if (form == SELKIE_PAGE) return made.svg;
  return form == SELKIE_JSON ? made.json : made.text;
}

void fill_port(const std::vector<Port>& ports, size_t index, const char* what, selkie_port* port) {
  if (index >= ports.size()) misuse("there is no {} {}: the model has {}", what, index, ports.size());
  write_struct(to_c(ports[index]), port, "selkie_port");
}

}  // namespace
}  // namespace selkie::api

using namespace selkie;
using namespace selkie::api;

selkie_status selkie_compile_file(const char* path, const selkie_options* options, selkie_model** model) {
  return guarded(SELKIE_BAD_MODEL, [&] {
    selkie_model*& made = require_result(model, "model");
    selkie_options given = read_struct(options, "selkie_options");
    made = make_model(require_file(path), {}, given);
  });
}

selkie_status selkie_compile_bytes(const void* bytes, size_t count, const selkie_options* options,
                                   selkie_model** model) {
  return guarded(SELKIE_BAD_MODEL, [&] {
    selkie_model*& made = require_result(model, "model");
    if (bytes == nullptr) misuse("bytes is NULL");
    selkie_options given = read_struct(options, "selkie_options");
    made = make_model({}, {static_cast<const char*>(bytes), count}, given);
  });
}

selkie_status selkie_load_file(const char* path, const selkie_options* options, selkie_model** model) {
  return guarded(SELKIE_BAD_MODEL, [&] {
    selkie_model*& made = require_result(model, "model");
    selkie_options given = read_struct(options, "selkie_options");
    std::string file = require_file(path);
    if (!program::is_artifact(file)) fail("'{}' is not a compiled model: selkie_compile_file takes models", file);
    made = make_model(std::move(file), {}, given);
  });
}

selkie_status selkie_model_save(const selkie_model* model, const char* path) {
  return guarded(SELKIE_BAD_MODEL,
                 [&] { driver::save(require(model, "model").model->built, require_text(path, "path")); });
}

void selkie_model_free(selkie_model* model) {
  if (is_live(model)) delete model;
}

size_t selkie_model_input_count(const selkie_model* model) { return is_live(model) ? model->model->inputs.size() : 0; }

size_t selkie_model_output_count(const selkie_model* model) {
  return is_live(model) ? model->model->outputs.size() : 0;
}

selkie_status selkie_model_input(const selkie_model* model, size_t index, selkie_port* port) {
  return guarded(SELKIE_INVALID_ARGUMENT,
                 [&] { fill_port(require(model, "model").model->inputs, index, "input", port); });
}

selkie_status selkie_model_output(const selkie_model* model, size_t index, selkie_port* port) {
  return guarded(SELKIE_INVALID_ARGUMENT,
                 [&] { fill_port(require(model, "model").model->outputs, index, "output", port); });
}

selkie_status selkie_model_describe(const selkie_model* model, selkie_model_info* info) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    const driver::Built& built = require(model, "model").model->built;
    selkie_model_info made{.size = 0,
                           .nodes = built.nodes,
                           .kernels = built.kernels,
                           .host_calls = built.host_calls,
                           .code_bytes = built.image.code.size(),
                           .code_is_cached = built.code_is_cached ? 1 : 0};
    write_struct(made, info, "selkie_model_info");
  });
}

selkie_status selkie_model_explain(const selkie_model* model, const char* node, const selkie_size* sizes,
                                   size_t sizes_count, selkie_form form, char** text) {
  return guarded(SELKIE_BAD_MODEL, [&] {
    char*& made = require_result(text, "text");
    const Source& source = require(model, "model").model->source;
    made = new_text(explanation(source, node, sizes_of(sizes, sizes_count), form));
  });
}

selkie_status selkie_model_plan(const selkie_model* model, const selkie_size* sizes, size_t sizes_count,
                                selkie_form form, char** text) {
  return guarded(SELKIE_BAD_MODEL, [&] {
    char*& made = require_result(text, "text");
    const Source& source = require(model, "model").model->source;
    made = new_text(memory_plan(source, sizes_of(sizes, sizes_count), form));
  });
}

void selkie_text_free(char* text) { std::free(text); }
