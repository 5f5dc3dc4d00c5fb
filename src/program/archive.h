// Values to bytes and back, little endian. A structure says its fields once, as
//     void fields(auto& archive, Is<Input> auto& input) { auto& [name, rank] = input; archive(name, rank); }
// which serves both directions and does not compile while a member is missing. Reading checks every count and every
// enumerator: whatever the bytes are, it gives a value or a user error.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"

namespace selkie::program {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <class T, class Structure>
concept Is = std::same_as<std::remove_const_t<T>, Structure>;

// How many enumerators an enumeration has, from 0: specialised for each that is archived.
template <class Enumeration>
inline constexpr int enumerators = 0;

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

template <>
inline constexpr int enumerators<DType> = 27;  // in ONNX's numbering, which begins with 1

class Writer {
 public:
  void operator()(const auto&... values) { (write(values), ...); }

  void write(const bool& value) { write(static_cast<uint8_t>(value)); }
  template <Number T>
  void write(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <class T>
    requires std::is_enum_v<T>
  void write(T value) {
    static_assert(enumerators<T> > 0);
    write(static_cast<uint8_t>(value));
  }
  void write(const std::string& text) {
    write(uint64_t{text.size()});
    bytes_ += text;
  }
  void write(const std::vector<std::byte>& bytes) {
    write(uint64_t{bytes.size()});
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class T>
  void write(const std::vector<T>& items) {
    write(uint64_t{items.size()});
    if constexpr (Number<T>)
      bytes_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    else
      for (const T& item : items) write(item);
  }
  template <class T, size_t count>
  void write(const std::array<T, count>& items) {
    for (const T& item : items) write(item);
  }
  template <class A, class B>
  void write(const std::pair<A, B>& pair) {
    write(pair.first);
    write(pair.second);
  }
  template <class T>
  void write(const std::optional<T>& value) {
    write(value.has_value());
    if (value) write(*value);
  }
  template <class T, class Order>
  void write(const std::map<std::string, T, Order>& items) {
    write(uint64_t{items.size()});
    for (const auto& [name, item] : items) (*this)(name, item);
  }
  template <class T>
    requires requires(Writer& archive, const T& value) { fields(archive, value); }
  void write(const T& value) {
    fields(*this, value);
  }

  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  // `what` is what messages call the bytes.
  Reader(std::span<const std::byte> bytes, std::string what) : rest_(bytes), what_(std::move(what)) {}

  void operator()(auto&... values) { (read(values), ...); }

  void read(bool& value) { value = number<uint8_t>(1) == 1; }
  template <Number T>
  void read(T& value) {
    std::span<const std::byte> bytes = take(sizeof(value));
    std::memcpy(&value, bytes.data(), sizeof(value));
  }
  template <class T>
    requires std::is_enum_v<T>
  void read(T& value) {
    static_assert(enumerators<T> > 0);
    value = static_cast<T>(number<uint8_t>(enumerators<T> - 1));
  }
  void read(DType& dtype) {
    auto known = dtype_from_onnx(number<uint8_t>());
    if (!known) fail("{} is damaged: there is no such type of elements", what_);
    dtype = *known;
  }
  void read(std::string& text) {
    std::span<const std::byte> bytes = take(number<uint64_t>(rest_.size()));
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void read(std::vector<std::byte>& to) {
    std::span<const std::byte> bytes = take(number<uint64_t>(rest_.size()));
    to.assign(bytes.begin(), bytes.end());
  }
  template <class T>
  void read(std::vector<T>& items) {
    if constexpr (Number<T>) {
      auto count = number<uint64_t>(rest_.size() / sizeof(T));
      std::span<const std::byte> bytes = take(count * sizeof(T));
      items.resize(count);
      if (count > 0) std::memcpy(items.data(), bytes.data(), bytes.size());
    } else {
      // Each item takes a byte at least, so that a false count ends with the bytes.
      for (auto count = number<uint64_t>(rest_.size()); count > 0; --count) read(items.emplace_back());
    }
  }
  template <class T, size_t count>
  void read(std::array<T, count>& items) {
    for (T& item : items) read(item);
  }
  template <class A, class B>
  void read(std::pair<A, B>& pair) {
    read(pair.first);
    read(pair.second);
  }
  template <class T>
  void read(std::optional<T>& value) {
    bool has_value = false;
    read(has_value);
    value.reset();
    if (has_value) read(value.emplace());
  }
  template <class T, class Order>
  void read(std::map<std::string, T, Order>& items) {
    for (auto count = number<uint64_t>(rest_.size()); count > 0; --count) {
      std::string name;
      read(name);
      read(items[name]);
    }
  }
  template <class T>
    requires requires(Reader& archive, T& value) { fields(archive, value); }
  void read(T& value) {
    fields(*this, value);
  }

  void expect_end() const {
    if (!rest_.empty()) fail("{} is damaged: {} bytes are left over", what_, rest_.size());
  }

 private:
  template <class T>
  T number(std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
    T value{};
    read(value);
    if (value > most) fail("{} is damaged: {} where at most {} is possible", what_, value, most);
    return value;
  }
  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) fail("{} is damaged: it ends too early", what_);
    std::span<const std::byte> bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

  std::span<const std::byte> rest_;
  std::string what_;
};

}  // namespace selkie::program
