// Contexts and runs of the C API.
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "api/failure.h"
#include "api/handles.h"
#include "api/overlap.h"

namespace selkie::api {

int require_threads(int32_t given, const char* option) {
  constexpr int32_t most = 1024;
  if (given < 0 || given > most) misuse("{} is {}, but must be 0 to {}", option, given, most);
  return given > 0 ? given : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

namespace {

// One run at a time: a second thread is refused.
class Turn {
 public:
  explicit Turn(selkie_context& context) : context_(context) {
    if (context.is_running.exchange(true)) misuse("the context is running in another thread: each needs its own");
  }
  ~Turn() { context_.is_running = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  selkie_context& context_;
};

size_t find_port(const std::vector<Port>& ports, const char* name, const char* what) {
  if (name == nullptr) misuse("the name of an {} is NULL", what);
  auto at = std::ranges::find(ports, std::string_view(name), &Port::name);
  if (at != ports.end()) return static_cast<size_t>(at - ports.begin());
  std::vector<std::string_view> known;
  for (const Port& port : ports) known.push_back(port.name);
  fail_input("the model has no {} '{}'; its {}s are '{}'", what, name, what, fmt::join(known, "', '"));
}

// Elements of which not every byte is one: what a kernel makes of others is anything.
void check_elements(const std::string& name, const HostValue& value) {
  if (value.is_sequence())
    for (const HostValue& item : value.sequence()) check_elements(name, item);
  if (value.is_optional() && value.optional().value) check_elements(name, *value.optional().value);
  if (value.is_map()) check_elements(name, value.map().values);
  if (!value.is_tensor()) return;
  const Tensor& tensor = value.tensor();
  DType dtype = tensor.dtype();
  if (dtype != DType::boolean && !is_sub_byte(dtype)) return;
  int bits = dtype == DType::boolean ? 1 : info(dtype).bits;
  int low = is_signed_integer(dtype) ? -(1 << (bits - 1)) : 0;
  int high = low + (1 << bits) - 1;
  for (int8_t byte : std::span(reinterpret_cast<const int8_t*>(tensor.bytes()), tensor.byte_size()))
    if (byte < low || byte > high)
      fail_input("input '{}' has a byte {}, which is no {}", name, byte, selkie::name(dtype));
}

HostValue input_value(const Port& port, const selkie_value* given) {
  bool is_optional = port.type.kind == ir::Type::Kind::opt;
  if (given == nullptr) {
    if (!is_optional) fail_input("input '{}' ({}) is missing", port.name, port.type_text);
    return Optional{};
  }
  const HostValue& content = require_content(given, "an input");
  check_elements(port.name, content);
  if (!is_optional || content.is_optional()) return content;
  return Optional{std::make_shared<const HostValue>(content)};
}

struct Given {
  const char* const* names;
  const selkie_value* const* values;
  size_t count;
};

std::vector<HostValue> bind(const std::vector<Port>& ports, const Given& given) {
  std::span<const selkie_value* const> values = require_list(given.values, given.count, "inputs");
  if (given.names == nullptr && values.size() > ports.size())
    fail_input("the model takes {} inputs, but {} are given", ports.size(), values.size());
  std::vector<const selkie_value*> places(ports.size(), nullptr);
  for (size_t i = 0; i < values.size(); ++i) {
    size_t at = given.names == nullptr ? i : find_port(ports, given.names[i], "input");
    if (places[at] != nullptr) fail_input("input '{}' is given twice", ports[at].name);
    places[at] = values[i];
  }
  std::vector<HostValue> bound;
  bound.reserve(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) bound.push_back(input_value(ports[i], places[i]));
  return bound;
}

// Which output each of the caller's places is for.
std::vector<size_t> wanted_outputs(const std::vector<Port>& ports, const char* const* names, size_t count) {
  std::vector<size_t> wanted;
  if (names == nullptr && count != ports.size())
    misuse("the model has {} outputs, but there are places for {}", ports.size(), count);
  for (size_t i = 0; i < count; ++i) wanted.push_back(names == nullptr ? i : find_port(ports, names[i], "output"));
  return wanted;
}

// A result that does not lie in memory of the inputs.
HostValue owned(const HostValue& value, std::span<const HostValue> inputs) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    if (tensor.dtype() == DType::str || !contains(inputs, tensor.bytes())) return value;
    Tensor copy(tensor.dtype(), tensor.dims());
    std::memcpy(copy.mutable_bytes(), tensor.bytes(), tensor.byte_size());
    return copy;
  }
  if (value.is_sequence()) {
    Sequence copy;
    for (const HostValue& item : value.sequence()) copy.items.push_back(owned(item, inputs));
    return copy;
  }
  if (value.is_optional() && value.optional().value)
    return Optional{std::make_shared<const HostValue>(owned(*value.optional().value, inputs))};
  return value;
}

std::vector<HostValue> run_model(selkie_context& context, const Given& given, std::span<const size_t> wanted) {
  const CompiledModel& model = *context.model;
  std::vector<HostValue> inputs = bind(model.inputs, given);
  model.declared->check_before_run(inputs);
  std::vector<HostValue> results = run(context.context, *model.declared, inputs);
  std::vector<HostValue> outputs;
  outputs.reserve(wanted.size());
  for (size_t at : wanted) outputs.push_back(owned(results[at], inputs));
  return outputs;
}

void require_buffers(std::span<selkie_value* const> buffers) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!require(buffers[i], "a buffer").is_buffer)
      misuse("buffer {} is a value that has no memory of the caller's", i);
    if (std::ranges::find(buffers.first(i), buffers[i]) != buffers.begin() + static_cast<ptrdiff_t>(i))
      misuse("buffer {} is given twice", i);
  }
}

const Tensor& require_numbers(const Port& port, const HostValue& result) {
  if (!result.is_tensor() || result.tensor().dtype() == DType::str)
    misuse("output '{}' is {}, which selkie_run gives, but no buffer holds", port.name, result.describe());
  return result.tensor();
}

// All that fit, or none.
void write_buffers(std::span<const HostValue> results, std::span<selkie_value* const> buffers,
                   std::span<const size_t> wanted, const std::vector<Port>& ports) {
  std::string complaint;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Tensor& tensor = require_numbers(ports[wanted[i]], results[i]);
    if (tensor.byte_size() <= buffers[i]->buffer_bytes || !complaint.empty()) continue;
    complaint = fmt::format("output '{}' is {} and needs {} bytes, but its buffer has {}", ports[wanted[i]].name,
                            results[i].describe(), tensor.byte_size(), buffers[i]->buffer_bytes);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Tensor& tensor = results[i].tensor();
    if (tensor.byte_size() == 0) {
      buffers[i]->value = tensor;
      continue;
    }
    void* to = complaint.empty() ? buffers[i]->buffer : nullptr;
    if (to != nullptr) std::memcpy(to, tensor.bytes(), tensor.byte_size());
    buffers[i]->value = Tensor::view(tensor.dtype(), tensor.dims(), static_cast<const std::byte*>(to), nullptr);
  }
  if (!complaint.empty()) throw Refusal(SELKIE_BUFFER_TOO_SMALL, complaint);
}

}  // namespace
}  // namespace selkie::api

using namespace selkie;
using namespace selkie::api;

selkie_status selkie_context_new(const selkie_model* model, const selkie_context_options* options,
                                 selkie_context** context) {
  return guarded(SELKIE_RUN_FAILED, [&] {
    selkie_context*& made = require_result(context, "context");
    selkie_context_options given = read_struct(options, "selkie_context_options");
    if (given.reserved != 0) misuse("reserved is {}, but must be 0", given.reserved);
    made = new selkie_context(require(model, "model").model, require_threads(given.threads, "threads"));
  });
}

void selkie_context_free(selkie_context* context) {
  if (is_live(context)) delete context;
}

selkie_status selkie_run(selkie_context* context, const char* const* input_names, const selkie_value* const* inputs,
                         size_t input_count, const char* const* output_names, selkie_value** outputs,
                         size_t output_count) {
  return guarded(SELKIE_RUN_FAILED, [&] {
    require_list(outputs, output_count, "outputs");
    std::fill_n(outputs, output_count, nullptr);
    selkie_context& runner = require(context, "context");
    Turn turn(runner);
    std::vector<size_t> wanted = wanted_outputs(runner.model->outputs, output_names, output_count);
    std::vector<HostValue> results = run_model(runner, {input_names, inputs, input_count}, wanted);
    std::vector<std::unique_ptr<selkie_value>> made;
    for (HostValue& result : results) made.push_back(std::make_unique<selkie_value>(std::move(result)));
    for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  });
}

selkie_status selkie_run_into(selkie_context* context, const char* const* input_names,
                              const selkie_value* const* inputs, size_t input_count, const char* const* output_names,
                              selkie_value* const* buffers, size_t buffer_count) {
  return guarded(SELKIE_RUN_FAILED, [&] {
    std::span<selkie_value* const> places = require_list(buffers, buffer_count, "buffers");
    selkie_context& runner = require(context, "context");
    Turn turn(runner);
    require_buffers(places);
    std::vector<size_t> wanted = wanted_outputs(runner.model->outputs, output_names, buffer_count);
    std::vector<HostValue> results = run_model(runner, {input_names, inputs, input_count}, wanted);
    write_buffers(results, places, wanted, runner.model->outputs);
  });
}
