// What a value of the tensor IR is at run time: a tensor, or a structure of tensors. Copies share their contents.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/tensor.h"

namespace selkie {

class HostValue;

struct Sequence {
  std::vector<HostValue> items;
};

struct Optional {
  std::shared_ptr<const HostValue> value;  // null: nothing inside
};

// Keys (i64 or str) and values as two one-dimensional tensors of equal length, sorted by key.
struct Map {
  Tensor keys;
  Tensor values;
};

// A tuple (no constructor) or a value of a named data type.
struct Record {
  std::string constructor;
  std::vector<HostValue> fields;
};

// A function with its first arguments already given.
struct Closure {
  std::string function;
  std::vector<HostValue> captured;
};

class HostValue {
 public:
  HostValue() = default;  // absent
  HostValue(const HostValue&) = default;
  HostValue(HostValue&& other) noexcept : content_(std::exchange(other.content_, {})) {}
  HostValue& operator=(const HostValue& other) { return *this = HostValue(other); }
  HostValue& operator=(HostValue&& other) noexcept {
    HostValue old(std::move(*this));
    content_ = std::exchange(other.content_, {});
    return *this;
  }
  // Takes apart what is nested in it one level at a time, so that a list of a million cells needs no deep stack.
  ~HostValue() {
    if (!is_absent() && !is_tensor()) release();
  }
  HostValue(Tensor tensor) : content_(std::move(tensor)) {}
  HostValue(Sequence sequence) : content_(std::make_shared<const Sequence>(std::move(sequence))) {}
  HostValue(Optional optional) : content_(std::move(optional)) {}
  HostValue(Map map) : content_(std::move(map)) {}
  HostValue(Record record) : content_(std::make_shared<const Record>(std::move(record))) {}
  HostValue(Closure closure) : content_(std::make_shared<const Closure>(std::move(closure))) {}

  bool is_absent() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(content_); }
  bool is_sequence() const { return std::holds_alternative<std::shared_ptr<const Sequence>>(content_); }
  bool is_optional() const { return std::holds_alternative<Optional>(content_); }
  bool is_map() const { return std::holds_alternative<Map>(content_); }
  bool is_record() const { return std::holds_alternative<std::shared_ptr<const Record>>(content_); }
  bool is_closure() const { return std::holds_alternative<std::shared_ptr<const Closure>>(content_); }

  // Each fails with a user error that says what the value is instead.
  const Tensor& tensor() const { return require<Tensor>("a tensor"); }
  const std::vector<HostValue>& sequence() const {
    return require<std::shared_ptr<const Sequence>>("a sequence")->items;
  }
  const Optional& optional() const { return require<Optional>("an optional"); }
  const Map& map() const { return require<Map>("a map"); }
  const Record& record() const { return *require<std::shared_ptr<const Record>>("a tuple or data value"); }
  const Closure& closure() const { return *require<std::shared_ptr<const Closure>>("a closure"); }

  // "f32[2, 3]", "seq of 3", …: what a message calls this value.
  std::string describe() const;

 private:
  template <class T>
  const T& require(const char* what) const {
    if (const T* content = std::get_if<T>(&content_)) return *content;
    fail("{} is needed, but the value is {}", what, describe());
  }

  using Content = std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>, Optional, Map,
                               std::shared_ptr<const Record>, std::shared_ptr<const Closure>>;
  void release();

  Content content_;
};

}  // namespace selkie
