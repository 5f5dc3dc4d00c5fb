/**
 * @file selkie.hpp
 * Selkie's C++20 API: a header over the C API (selkie.h), so that programs need not be compiled again for a newer
 * library.
 *
 * Objects own what they stand for and are moved, not copied. What fails throws `selkie::Error`. Threads are as in
 * selkie.h: a model may be shared, a context runs one thing at a time.
 */
#ifndef SELKIE_SELKIE_HPP
#define SELKIE_SELKIE_HPP

#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "selkie/selkie.h"

namespace selkie {
// Names of its own for the linker, which may also see the names that the library uses inside.
inline namespace abi0 {

/** A call that failed: the library's text, and the status of selkie.h. */
class Error : public std::runtime_error {
 public:
  Error(selkie_status status, const char* text) : std::runtime_error(text), status_(status) {}
  selkie_status status() const { return status_; }

 private:
  selkie_status status_;
};

/** Throws what a call of the C API says. */
inline void check(selkie_status status) {
  if (status != SELKIE_OK) throw Error(status, selkie_last_error());
}

/** The type of elements that a C++ type stands for; a compile error for others, whose dtype is then given by number. */
template <class T>
constexpr selkie_dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return SELKIE_BOOL;
  else if constexpr (std::is_same_v<U, float>)
    return SELKIE_F32;
  else if constexpr (std::is_same_v<U, double>)
    return SELKIE_F64;
  else if constexpr (std::is_same_v<U, std::complex<float>>)
    return SELKIE_C64;
  else if constexpr (std::is_same_v<U, std::complex<double>>)
    return SELKIE_C128;
  else {
    static_assert(std::is_integral_v<U>, "no type of elements stands for this type");
    constexpr selkie_dtype of_signed[] = {SELKIE_I8, SELKIE_I16, SELKIE_I32, SELKIE_I64};
    constexpr selkie_dtype of_unsigned[] = {SELKIE_U8, SELKIE_U16, SELKIE_U32, SELKIE_U64};
    constexpr int by_size = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return std::is_signed_v<U> ? of_signed[by_size] : of_unsigned[by_size];
  }
}

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* handle) const {
    Free(handle);
  }
};

/** Sizes of a tensor's axes. */
using Dims = std::vector<std::int64_t>;

/** An input or output of a run: a tensor, or a structure of tensors. */
class Value {
 public:
  Value() = default;
  /** Takes over a handle of the C API. */
  explicit Value(selkie_value* handle) : handle_(handle) {}

  /** A tensor over memory that must stay as long as the value; it is not copied. */
  template <class T>
  static Value view(std::span<const T> elements, const Dims& dims) {
    return view(dtype_of<T>(), dims, elements.data(), elements.size_bytes());
  }
  template <class T>
  static Value view(const std::vector<T>& elements, const Dims& dims) {
    return view(std::span<const T>(elements), dims);
  }
  static Value view(selkie_dtype dtype, const Dims& dims, const void* data, std::size_t bytes) {
    return made([&](selkie_value** to) { return selkie_value_view(dtype, dims.data(), dims.size(), data, bytes, to); });
  }
  /** A tensor with a copy of the elements. */
  template <class T>
  static Value copy(std::span<const T> elements, const Dims& dims) {
    return made([&](selkie_value** to) {
      return selkie_value_copy(dtype_of<T>(), dims.data(), dims.size(), elements.data(), elements.size_bytes(), to);
    });
  }
  template <class T>
  static Value copy(std::initializer_list<T> elements, const Dims& dims) {
    return copy(std::span<const T>(elements.begin(), elements.size()), dims);
  }
  /** A tensor of strings, which are copied. */
  static Value strings(std::span<const std::string> texts, const Dims& dims) {
    std::vector<const char*> data;
    std::vector<std::size_t> lengths;
    for (const std::string& text : texts) {
      data.push_back(text.data());
      lengths.push_back(text.size());
    }
    return made([&](selkie_value** to) {
      return selkie_value_strings(dims.data(), dims.size(), data.data(), lengths.data(), data.size(), to);
    });
  }
  /** A sequence; memory that its items view must stay. */
  static Value sequence(std::span<const Value> items) {
    std::vector<const selkie_value*> handles = handles_of(items);
    return made([&](selkie_value** to) { return selkie_value_sequence(handles.data(), handles.size(), to); });
  }
  /** An optional with a value in it, or with none. */
  static Value optional(const Value& item = {}) {
    return made([&](selkie_value** to) { return selkie_value_optional(item.get(), to); });
  }
  /** A map from keys (i64 or strings) to as many values, both tensors of rank 1. */
  static Value map(const Value& keys, const Value& values) {
    return made([&](selkie_value** to) { return selkie_value_map(keys.get(), values.get(), to); });
  }
  /** Memory for a result of `Context::run_into`, which must stay as long as the value. */
  template <class T>
  static Value buffer(std::span<T> memory) {
    return made([&](selkie_value** to) { return selkie_value_buffer(memory.data(), memory.size_bytes(), to); });
  }
  template <class T>
  static Value buffer(std::vector<T>& memory) {
    return buffer(std::span<T>(memory));
  }

  selkie_kind kind() const { return selkie_value_kind(get()); }
  selkie_dtype dtype() const { return selkie_value_dtype(get()); }
  std::span<const std::int64_t> dims() const { return {selkie_value_dims(get()), selkie_value_rank(get())}; }
  std::size_t count() const { return selkie_value_count(get()); }
  std::size_t bytes() const { return selkie_value_bytes(get()); }
  const void* bytes_data() const { return selkie_value_data(get()); }
  /** A tensor's elements, which live as long as the value; throws if they are of another type. */
  template <class T>
  std::span<const T> data() const {
    if (dtype() != dtype_of<T>()) throw Error(SELKIE_INVALID_ARGUMENT, "the value has elements of another type");
    const void* elements = selkie_value_data(get());
    if (elements == nullptr && count() > 0) throw Error(SELKIE_INVALID_ARGUMENT, "the buffer was not written");
    return {static_cast<const T*>(elements), count()};
  }
  /** A string of a tensor of strings. */
  std::string_view text(std::size_t index) const {
    const char* text = nullptr;
    std::size_t length = 0;
    check(selkie_value_string(get(), index, &text, &length));
    return {text, length};
  }
  /** An item of a sequence or tuple, the value in an optional (0), the keys (0) or values (1) of a map. */
  Value item(std::size_t index) const {
    return made([&](selkie_value** to) { return selkie_value_item(get(), index, to); });
  }

  explicit operator bool() const { return handle_ != nullptr; }
  selkie_value* get() const { return handle_.get(); }

  static std::vector<const selkie_value*> handles_of(std::span<const Value> values) {
    std::vector<const selkie_value*> handles;
    for (const Value& value : values) handles.push_back(value.get());
    return handles;
  }

 private:
  template <class Make>
  static Value made(Make make) {
    selkie_value* handle = nullptr;
    check(make(&handle));
    return Value(handle);
  }
  std::unique_ptr<selkie_value, Freed<selkie_value_free>> handle_;
};

/** How a model is compiled, and what its runs may use; selkie_options says what each means. */
struct Options {
  std::vector<std::string> dims = {};
  std::vector<std::string> without = {};
  std::string cache_folder = {};
  std::uint64_t cache_bytes = 0;
  bool no_cache = false;
  bool exact = false;
  int compile_threads = 0;
  bool keep_source = false;
  std::string data_folder = {};
  std::uint64_t seed = 0;
  std::int64_t trip_limit = 0;
  std::int64_t item_limit = 0;
  std::int64_t memory_limit = 0;
  double time_limit = 0;
  std::function<void(int level, std::string_view message)> log = {};
};

/** An input or output as a model declares it: `dims` has -1 where a size is open, `dim_names` says what it is. */
struct Port {
  std::string name;
  std::string type;
  selkie_kind kind = SELKIE_NONE;
  selkie_dtype dtype = 0;
  bool has_rank = false;
  Dims dims = {};
  std::vector<std::string> dim_names = {};
};

/** A size of inputs by its name in the model. */
struct Size {
  std::string name;
  std::int64_t size = 0;
};

/** A compiled model. It may be used by several threads; each runs it in a context of its own. */
class Model {
 public:
  /** Compiles a file: ONNX, or text IR (.sk). */
  static Model compile(const std::string& path, const Options& options = {}) {
    return made(options,
                [&](const selkie_options* o, selkie_model** to) { return selkie_compile_file(path.c_str(), o, to); });
  }
  /** Compiles an ONNX model in memory, which need not stay. */
  static Model compile(std::span<const std::byte> bytes, const Options& options = {}) {
    return made(options, [&](const selkie_options* o, selkie_model** to) {
      return selkie_compile_bytes(bytes.data(), bytes.size(), o, to);
    });
  }
  /** Loads what `save` or `selkie compile` wrote. */
  static Model load(const std::string& path, const Options& options = {}) {
    return made(options,
                [&](const selkie_options* o, selkie_model** to) { return selkie_load_file(path.c_str(), o, to); });
  }
  void save(const std::string& path) const { check(selkie_model_save(get(), path.c_str())); }

  std::vector<Port> inputs() const { return ports(selkie_model_input_count(get()), selkie_model_input); }
  std::vector<Port> outputs() const { return ports(selkie_model_output_count(get()), selkie_model_output); }
  selkie_model_info info() const {
    selkie_model_info info{};
    info.size = sizeof info;
    check(selkie_model_describe(get(), &info));
    return info;
  }

  /** What is known of shapes before the run, and what the model compiles to. */
  std::string explain(const std::vector<Size>& sizes = {}, selkie_form form = SELKIE_TEXT) const {
    return report(sizes, [&](const selkie_size* given, std::size_t count, char** to) {
      return selkie_model_explain(get(), nullptr, given, count, form, to);
    });
  }
  /** Why one node or value is as it is. */
  std::string explain_node(const std::string& node) const {
    return report({}, [&](const selkie_size* given, std::size_t count, char** to) {
      return selkie_model_explain(get(), node.c_str(), given, count, SELKIE_TEXT, to);
    });
  }
  /** What a run needs of memory at these sizes. */
  std::string plan(const std::vector<Size>& sizes = {}, selkie_form form = SELKIE_TEXT) const {
    return report(sizes, [&](const selkie_size* given, std::size_t count, char** to) {
      return selkie_model_plan(get(), given, count, form, to);
    });
  }

  /** One run in a context of its own. Whoever runs a model often keeps a `Context`. */
  std::vector<Value> run(std::span<const Value> inputs) const;
  std::vector<Value> run(std::initializer_list<Value> inputs) const { return run({inputs.begin(), inputs.size()}); }

  selkie_model* get() const { return handle_.get(); }

 private:
  explicit Model(selkie_model* handle) : handle_(handle) {}

  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    for (const std::string& text : texts) out.push_back(text.c_str());
    return out;
  }
  static void log(void* data, std::int32_t level, const char* message) {
    static_cast<const Options*>(data)->log(level, message);
  }
  template <class Make>
  static Model made(const Options& options, Make make) {
    std::vector<const char*> dims = pointers(options.dims), without = pointers(options.without);
    selkie_options given{};
    given.size = sizeof given;
    given.dims = dims.data();
    given.dims_count = dims.size();
    given.without = without.data();
    given.without_count = without.size();
    given.cache_folder = options.cache_folder.empty() ? nullptr : options.cache_folder.c_str();
    given.cache_bytes = options.cache_bytes;
    given.no_cache = options.no_cache ? 1 : 0;
    given.exact = options.exact ? 1 : 0;
    given.compile_threads = options.compile_threads;
    given.keep_source = options.keep_source ? 1 : 0;
    given.data_folder = options.data_folder.empty() ? nullptr : options.data_folder.c_str();
    given.seed = options.seed;
    given.trip_limit = options.trip_limit;
    given.item_limit = options.item_limit;
    given.memory_limit = options.memory_limit;
    given.time_limit = options.time_limit;
    given.log = options.log ? log : nullptr;
    given.log_data = const_cast<Options*>(&options);
    selkie_model* handle = nullptr;
    check(make(&given, &handle));
    return Model(handle);
  }
  template <class Fill>
  std::vector<Port> ports(std::size_t count, Fill fill) const {
    std::vector<Port> out;
    for (std::size_t i = 0; i < count; ++i) {
      selkie_port port{};
      port.size = sizeof port;
      check(fill(get(), i, &port));
      std::size_t rank = port.rank < 0 ? 0 : static_cast<std::size_t>(port.rank);
      out.push_back({port.name, port.type, port.kind, port.dtype, port.rank >= 0, Dims(port.dims, port.dims + rank),
                     std::vector<std::string>(port.dim_names, port.dim_names + rank)});
    }
    return out;
  }
  template <class Make>
  static std::string report(const std::vector<Size>& sizes, Make make) {
    std::vector<selkie_size> given;
    for (const Size& size : sizes) given.push_back({size.name.c_str(), size.size});
    char* text = nullptr;
    check(make(given.data(), given.size(), &text));
    std::unique_ptr<char, Freed<selkie_text_free>> owned(text);
    return text;
  }

  std::unique_ptr<selkie_model, Freed<selkie_model_free>> handle_;
};

/** What one run at a time needs: make one for each thread that runs a model. It may outlive the model. */
class Context {
 public:
  /** Threads share the work of a kernel, the caller's among them; 0 is one per core. */
  explicit Context(const Model& model, int threads = 0) : outputs_(selkie_model_output_count(model.get())) {
    selkie_context_options options{};
    options.size = sizeof options;
    options.threads = threads;
    selkie_context* handle = nullptr;
    check(selkie_context_new(model.get(), &options, &handle));
    handle_.reset(handle);
  }

  /** All outputs, of inputs in the model's order. */
  std::vector<Value> run(std::span<const Value> inputs) {
    std::vector<const selkie_value*> handles = Value::handles_of(inputs);
    return run(nullptr, handles, nullptr, outputs_);
  }
  std::vector<Value> run(std::initializer_list<Value> inputs) {
    return run(std::span<const Value>(inputs.begin(), inputs.size()));
  }
  /** The named outputs, of named inputs. */
  std::vector<Value> run(std::initializer_list<std::pair<const char*, const Value&>> inputs,
                         std::initializer_list<const char*> outputs) {
    std::vector<const char*> names;
    std::vector<const selkie_value*> handles;
    for (const auto& [name, value] : inputs) {
      names.push_back(name);
      handles.push_back(value.get());
    }
    return run(names.data(), handles, std::data(outputs), outputs.size());
  }
  /** Results in memory of the caller's: one value of `Value::buffer` for each output of the model. */
  void run_into(std::span<const Value> inputs, std::span<const Value> buffers) {
    std::vector<const selkie_value*> handles = Value::handles_of(inputs);
    std::vector<selkie_value*> places;
    for (const Value& buffer : buffers) places.push_back(buffer.get());
    check(selkie_run_into(get(), nullptr, handles.data(), handles.size(), nullptr, places.data(), places.size()));
  }
  void run_into(std::initializer_list<Value> inputs, const Value& buffer) {
    run_into(std::span<const Value>(inputs.begin(), inputs.size()), std::span<const Value>(&buffer, 1));
  }

  selkie_context* get() const { return handle_.get(); }

 private:
  std::vector<Value> run(const char* const* input_names, const std::vector<const selkie_value*>& inputs,
                         const char* const* output_names, std::size_t count) {
    std::vector<selkie_value*> handles(count, nullptr);
    std::vector<Value> outputs;
    outputs.reserve(count);
    check(selkie_run(get(), input_names, inputs.data(), inputs.size(), output_names, handles.data(), count));
    for (selkie_value* handle : handles) outputs.emplace_back(handle);
    return outputs;
  }

  std::size_t outputs_;
  std::unique_ptr<selkie_context, Freed<selkie_context_free>> handle_;
};

inline std::vector<Value> Model::run(std::span<const Value> inputs) const { return Context(*this).run(inputs); }

}  // namespace abi0
}  // namespace selkie

#endif
