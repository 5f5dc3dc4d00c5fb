// What the bytes of an archived type mean, as text: it differs between builds that cannot read each other's files.
#pragma once

#include "program/archive.h"

namespace selkie::program {

class Layout {
 public:
  template <class T>
  static std::string of() {
    Layout layout;
    layout.describe(static_cast<const T*>(nullptr));
    return std::move(layout.text_);
  }

  void operator()(const auto&... values) { (describe(&values), ...); }

 private:
  template <class T>
  void describe(const T*) {
    if constexpr (std::is_enum_v<T>) {
      text_ += fmt::format("e{}", enumerators<T>);
    } else if constexpr (Number<T>) {
      text_ += fmt::format("{}{}", std::floating_point<T> ? 'f' : 'i', sizeof(T));
    } else {
      const T example{};
      text_ += '{';
      fields(*this, example);
      text_ += '}';
    }
  }
  void describe(const std::string*) { text_ += 's'; }
  template <class T>
  void describe(const std::vector<T>*) {
    text_ += 'v';
    describe(static_cast<const T*>(nullptr));
  }
  template <class T, size_t count>
  void describe(const std::array<T, count>*) {
    text_ += fmt::format("a{}", count);
    describe(static_cast<const T*>(nullptr));
  }
  template <class A, class B>
  void describe(const std::pair<A, B>*) {
    text_ += 'p';
    describe(static_cast<const A*>(nullptr));
    describe(static_cast<const B*>(nullptr));
  }
  template <class T>
  void describe(const std::optional<T>*) {
    text_ += 'o';
    describe(static_cast<const T*>(nullptr));
  }
  template <class T, class Order>
  void describe(const std::map<std::string, T, Order>*) {
    text_ += 'm';
    describe(static_cast<const T*>(nullptr));
  }

  std::string text_;
};

}  // namespace selkie::program
