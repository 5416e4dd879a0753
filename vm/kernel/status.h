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
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rewire/vm/kernel/compiled.h"

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
  Status(const char* kind, std::string message);

  // A failure whose error the VM has already set. Return it when the VM's workspace() returned NULL.
  static Status AlreadySet() { return Status(nullptr, std::string()); }

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  const char* kind() const { return error_->kind; }               // only when !ok(); null for AlreadySet
  const std::string& message() const { return error_->message; }  // only when !ok()

  // Puts "context: " before the message of a failure.
  Status WithContext(std::string_view context) &&;

 private:
  struct Error {
    const char* kind;
    std::string message;
  };
  struct Deleter {
    [[gnu::cold]] void operator()(Error* error) const;
  };
  std::unique_ptr<Error, Deleter> error_;
};

namespace internal {

// A string, a number or a shape of a message. It borrows strings and shapes.
class Part {
 public:
  constexpr Part(std::string_view text) : kind_(Kind::kText), text_(text) {}
  constexpr Part(const char* text) : Part(std::string_view(text)) {}
  Part(const std::string& text) : Part(std::string_view(text)) {}
  constexpr Part(ShapeView shape) : kind_(Kind::kShape), shape_(shape) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  constexpr Part(T number) : kind_(Kind::kSigned), signed_(0) {
    if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::kFloat;
      float_ = static_cast<double>(number);
    } else if constexpr (std::is_signed_v<T>) {
      signed_ = static_cast<std::int64_t>(number);
    } else {
      kind_ = Kind::kUnsigned;
      unsigned_ = static_cast<std::uint64_t>(number);
    }
  }

  void AppendTo(std::string* text) const;

 private:
  enum class Kind { kText, kShape, kSigned, kUnsigned, kFloat };
  Kind kind_;
  union {
    std::string_view text_;
    ShapeView shape_;
    std::int64_t signed_;
    std::uint64_t unsigned_;
    double float_;
  };
};

REWIRE_KERNEL_INLINE std::string Join(std::initializer_list<Part> parts);
// A failure of this kind, whose message the parts make. It is not inlined, since messages are rare.
[[gnu::cold]] REWIRE_KERNEL_INLINE Status Failure(const char* kind, std::initializer_list<Part> parts);

}  // namespace internal

// Joins strings, numbers and shapes ("[2, 3]") to one text.
template <typename... Parts>
std::string Text(const Parts&... parts) {
  return internal::Join({internal::Part(parts)...});
}

// The argument has a wrong type: it is no tensor, or the kernel does not take its dtype.
template <typename... Parts>
[[gnu::always_inline]] inline Status TypeError(const Parts&... parts) {
  return internal::Failure("TypeError", {internal::Part(parts)...});
}
// The type is right but the value is wrong: a shape, an index, an attribute.
template <typename... Parts>
[[gnu::always_inline]] inline Status ValueError(const Parts&... parts) {
  return internal::Failure("ValueError", {internal::Part(parts)...});
}
// Something that the kernel needs is missing: memory, a device, a library.
template <typename... Parts>
[[gnu::always_inline]] inline Status RuntimeError(const Parts&... parts) {
  return internal::Failure("RuntimeError", {internal::Part(parts)...});
}

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE Status::Status(const char* kind, std::string message)
    : error_(new Error{kind, std::move(message)}) {}

REWIRE_KERNEL_INLINE void Status::Deleter::operator()(Error* error) const { delete error; }

REWIRE_KERNEL_INLINE Status Status::WithContext(std::string_view context) && {
  if (error_) error_->message.insert(0, std::string(context) + ": ");
  return std::move(*this);
}

REWIRE_KERNEL_INLINE void internal::Part::AppendTo(std::string* text) const {
  switch (kind_) {
    case Kind::kText:
      text->append(text_);
      return;
    case Kind::kSigned:
      text->append(std::to_string(signed_));
      return;
    case Kind::kUnsigned:
      text->append(std::to_string(unsigned_));
      return;
    case Kind::kFloat:
      text->append(std::to_string(float_));
      return;
    case Kind::kShape:
      text->push_back('[');
      for (std::size_t i = 0; i < shape_.size(); ++i) {
        if (i != 0) text->append(", ");
        text->append(std::to_string(shape_[i]));
      }
      text->push_back(']');
      return;
  }
}

REWIRE_KERNEL_INLINE std::string internal::Join(std::initializer_list<Part> parts) {
  std::string text;
  for (const Part& part : parts) part.AppendTo(&text);
  return text;
}

REWIRE_KERNEL_INLINE Status internal::Failure(const char* kind, std::initializer_list<Part> parts) {
  return Status(kind, Join(parts));
}
#endif

}  // namespace rewire::kernel
