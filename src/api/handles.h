// What the opaque types of the C API hold.
#pragma once

#include <atomic>
#include <memory>

#include "api/checked_run.h"
#include "api/entry.h"
#include "api/source.h"

namespace selkie::api {

// An input or output, with the memory that a selkie_port points to.
struct Port {
  std::string name;
  ir::Type type;
  std::string type_text;
  std::vector<int64_t> dims;
  std::vector<std::string> dim_texts;
  std::vector<const char*> dim_names;  // the same texts
};

struct CompiledModel {
  Source source;
  std::string kept_bytes;  // that the source points into
  driver::Built built;
  std::unique_ptr<const DeclaredInputs> declared;
  std::vector<Port> inputs, outputs;
};

}  // namespace selkie::api

struct selkie_model : selkie::api::Handle {
  static constexpr uint64_t kind = 0x6c65646f6d6b6573;
  static constexpr const char* name = "selkie_model";
  explicit selkie_model(std::shared_ptr<const selkie::api::CompiledModel> m) : Handle(kind), model(std::move(m)) {}
  std::shared_ptr<const selkie::api::CompiledModel> model;
};

struct selkie_context : selkie::api::Handle {
  static constexpr uint64_t kind = 0x747865746e6f6373;
  static constexpr const char* name = "selkie_context";
  selkie_context(std::shared_ptr<const selkie::api::CompiledModel> m, int threads)
      : Handle(kind), model(std::move(m)), context(model->built.executable, threads) {}
  std::shared_ptr<const selkie::api::CompiledModel> model;
  selkie::runtime::Context context;
  std::atomic<bool> is_running = false;
};

struct selkie_value : selkie::api::Handle {
  static constexpr uint64_t kind = 0x65756c61766b6573;
  static constexpr const char* name = "selkie_value";
  explicit selkie_value(selkie::HostValue v, int depth = 0) : Handle(kind), value(std::move(v)), nesting(depth) {}
  selkie_value(void* memory, size_t bytes) : Handle(kind), buffer(memory), buffer_bytes(bytes), is_buffer(true) {}
  selkie::HostValue value;  // of a buffer: what was written; a tensor at NULL if it did not fit
  int nesting = 0;          // at most so many values are inside each other
  void* buffer = nullptr;
  size_t buffer_bytes = 0;
  bool is_buffer = false;
};

namespace selkie::api {

// A number of threads, of which 0 is one per core.
int require_threads(int32_t given, const char* option);

// Of a value that is there: neither a buffer that was never written nor one that was too small.
const HostValue& require_content(const selkie_value* value, const char* argument);

}  // namespace selkie::api
