// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/status.h>.
//
// Status: how a kernel written in C++ reports failure. C++17. A kernel library needs no other folder of
// Rewire than this one.
//
//   if (x.ndim() != 2) return ValueError("x has shape ", x.dims(), ", expected rank 2");
//
// Success is one null pointer. Nothing is allocated or formatted unless something fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rewire::kernel {

// Borrowed integers, such as a shape, strides or axes.
class ShapeView {
 public:
  constexpr ShapeView() = default;
  constexpr ShapeView(const std::int64_t* data, std::size_t size) : data_(data), size_(size) {}

  constexpr const std::int64_t* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const std::int64_t* begin() const { return data_; }
  constexpr const std::int64_t* end() const { return data_ + size_; }
  constexpr std::int64_t operator[](std::size_t i) const { return data_[i]; }

  friend bool operator==(ShapeView a, ShapeView b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (a.data_[i] != b.data_[i]) return false;
    }
    return true;
  }
  friend bool operator!=(ShapeView a, ShapeView b) { return !(a == b); }

 private:
  const std::int64_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// OK, or a kind ("TypeError", a string literal) with a message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(const char* kind, std::string message) : error_(new Error{kind, std::move(message)}) {}

  // A failure whose error the VM has already set. Return it when the VM's workspace() returned NULL.
  static Status AlreadySet() { return Status(nullptr, std::string()); }

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  const char* kind() const { return error_->kind; }               // only when !ok(); null for AlreadySet
  const std::string& message() const { return error_->message; }  // only when !ok()

  // Puts "context: " before the message of a failure.
  Status WithContext(std::string_view context) && {
    if (error_) error_->message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }

 private:
  struct Error {
    const char* kind;
    std::string message;
  };
  std::unique_ptr<Error> error_;
};

namespace internal {

inline void AppendPart(std::string* text, std::string_view part) { text->append(part); }
inline void AppendPart(std::string* text, ShapeView shape) {
  text->push_back('[');
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text->append(", ");
    text->append(std::to_string(shape[i]));
  }
  text->push_back(']');
}
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
void AppendPart(std::string* text, T number) {
  text->append(std::to_string(number));
}

}  // namespace internal

// Joins strings, numbers and shapes ("[2, 3]") to one text.
template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::string text;
  (internal::AppendPart(&text, parts), ...);
  return text;
}

// The argument has a wrong type: it is no tensor, or the kernel does not take its dtype.
template <typename... Parts>
Status TypeError(const Parts&... parts) {
  return Status("TypeError", Text(parts...));
}
// The type is right but the value is wrong: a shape, an index, an attribute.
template <typename... Parts>
Status ValueError(const Parts&... parts) {
  return Status("ValueError", Text(parts...));
}
// Something that the kernel needs is missing: memory, a device, a library.
template <typename... Parts>
Status RuntimeError(const Parts&... parts) {
  return Status("RuntimeError", Text(parts...));
}

}  // namespace rewire::kernel
