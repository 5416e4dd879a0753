// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/status.h>.
//
// Status and Result: how every function of Rewire reports failure.
//
// Library code returns them; it never prints and never aborts. A failure collects context on its way up (see
// Forward), so its message reads from the outside in:
//   decode main@12 (invoke_packed): operand 2 names register 9, the frame has 6
// A failure owns its message for as long as it lives. Error is also the exception type that the throwing
// functions of the C++ interface use.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "rewire/base/assert.h"
#include "rewire/base/export.h"
#include "rewire/base/message.h"

namespace rewire {

// The numbers are stable: the C API and the exit codes of the tools use them.
enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,     // the caller gave a wrong name, index, dtype, shape or option
  kNotFound = 2,            // no such file, function, input, kernel library
  kIo = 3,                  // the operating system refused a read or a write
  kInvalidFile = 4,         // not an executable, or a damaged one
  kUnsupported = 5,         // well-formed, but too new, or needs a part that this library was built without
  kVerificationFailed = 6,  // an executable breaks a rule of docs/verification.md
  kLinkFailed = 7,          // kernels or parameters are missing or do not match
  kRuntimeFailed = 8,       // an instruction failed: shape, dtype, bounds, Fatal
  kKernelFailed = 9,        // a packed function returned an error
  kDepthLimit = 10,
  kStepLimit = 11,
  kMemoryLimit = 12,
  kDeadlineExceeded = 13,
  kCancelled = 14,
  kOutOfMemory = 15,  // the allocator returned null
  kBusy = 16,         // an object that serves one thread at a time is already in use
  kInternal = 17,     // a bug in Rewire
};

// Returns the name of a code, such as "invalid argument". Static storage.
REWIRE_API const char* StatusCodeName(StatusCode code);

// A failure: a code and a message. Copies share the message, but AddContext changes only the copy it is
// called on. Several threads may read one Error at once.
class REWIRE_API Error : public std::exception {
 public:
  Error(StatusCode code, std::string message) noexcept;
  Error(const Error& other) noexcept;
  Error& operator=(const Error& other) noexcept;
  ~Error() override;

  StatusCode code() const noexcept;
  const std::string& message() const noexcept;
  const char* what() const noexcept override;

  // Puts "context: " before the message. The code stays the same.
  Error& AddContext(const Message& context);

 private:
  friend class Status;
  struct Rep;
  explicit Error(Rep* shared) noexcept;

  Rep* rep_;  // counted; never null
};

// Success, or a failure with its message.
//
// A success is one null pointer, so it costs no memory. Copies of a failure share its message. Moving from a
// Status leaves it unchanged. Several threads may read one Status at once.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  REWIRE_API Status(const Error& error) noexcept;
  Status(const Status& other) noexcept : failure_(other.failure_) {
    if (failure_ != nullptr) Retain();
  }
  Status& operator=(const Status& other) noexcept {
    Status copy(other);
    std::swap(failure_, copy.failure_);
    return *this;
  }
  ~Status() {
    if (failure_ != nullptr) Release();
  }

  explicit operator bool() const noexcept { return failure_ == nullptr; }
  bool has_value() const noexcept { return failure_ == nullptr; }
  REWIRE_API StatusCode code() const noexcept;
  // Returns the failure. Calling it on a success is a bug of the caller and returns an error with the code
  // kInternal.
  REWIRE_API Error error() const noexcept;

 private:
  [[gnu::cold]] REWIRE_API void Retain() const noexcept;
  [[gnu::cold]] REWIRE_API void Release() const noexcept;

  Error::Rep* failure_ = nullptr;
};

// Either a T or a failure: what a function that makes a T returns. A Result that was moved from still says
// which of the two it was.
template <typename T>
class [[nodiscard]] Result {
 public:
  template <typename U = T, typename = std::enable_if_t<std::is_convertible_v<U&&, T> &&
                                                        !std::is_same_v<std::decay_t<U>, Result> &&
                                                        !std::is_same_v<std::decay_t<U>, Status>>>
  Result(U&& value) : value_(std::in_place, std::forward<U>(value)) {}
  // Makes a failed Result from what Fail or Forward returned. Passing an OK Status is a bug of the caller;
  // the Result then holds an error with the code kInternal.
  Result(const Status& failure) noexcept : status_(failure) {
    REWIRE_ASSERT(!failure, "a Result is made of a Status that is OK");
  }

  explicit operator bool() const noexcept { return value_.has_value(); }
  bool has_value() const noexcept { return value_.has_value(); }

  // Returns the T. Calling it on a failure is a bug of the caller; value() throws in that case instead.
  T& operator*() & noexcept {
    CheckValue();
    return *value_;
  }
  const T& operator*() const& noexcept {
    CheckValue();
    return *value_;
  }
  T&& operator*() && noexcept {
    CheckValue();
    return *std::move(value_);
  }
  T* operator->() noexcept {
    CheckValue();
    return std::addressof(*value_);
  }
  const T* operator->() const noexcept {
    CheckValue();
    return std::addressof(*value_);
  }
  template <typename U>
  T value_or(U&& other) const& {
    return value_.value_or(std::forward<U>(other));
  }
#if defined(__cpp_exceptions)
  // Returns the T, or throws the Error of a failure.
  T& value() & {
    if (!value_) throw error();
    return *value_;
  }
  const T& value() const& {
    if (!value_) throw error();
    return *value_;
  }
  T&& value() && {
    if (!value_) throw error();
    return *std::move(value_);
  }
#endif

  // Returns the failure; for a success, an error with the code kInternal.
  Error error() const noexcept { return status_.error(); }
  // Returns OK for a success, else the failure.
  Status status() const noexcept { return has_value() ? Status() : Status(error()); }

 private:
  void CheckValue() const noexcept {
    REWIRE_ASSERT(value_.has_value(), "a failed Result has no value: {}", error().message());
  }

  Status status_;
  std::optional<T> value_;
};

// Makes the failure that a function returns. The text has one placeholder "{}" for each argument. Arguments
// are texts or integers:
//   return Fail(StatusCode::kInvalidArgument, "rank {} given, 0 to {} expected", rank, kMaxRank);
// Marked cold, so that the compiler moves error branches away from the hot code.
[[gnu::cold]] REWIRE_API Status Fail(StatusCode code, const Message& message) noexcept;
[[gnu::cold]] REWIRE_API Status Fail(StatusCode code, const char* text) noexcept;
[[gnu::cold]] REWIRE_API Status Fail(StatusCode code, std::string text) noexcept;
inline Status Fail(const Error& error) noexcept { return error; }

namespace message_internal {
// Instantiated once for each number of arguments. The layout's tag is the StatusCode.
template <typename... Words>
[[gnu::cold, gnu::noinline]] Status FailWords(Layout layout, Words... words) {
  return Fail(static_cast<StatusCode>(layout.tag()), Message(layout, words...));
}
}  // namespace message_internal

template <typename First, typename... Rest>
[[gnu::always_inline]] inline Status Fail(StatusCode code, MessageFormat<1 + sizeof...(Rest)> format,
                                          const First& first, const Rest&... rest) {
  return message_internal::FailWords(
      {format.text(), message_internal::TagAndKinds<First, Rest...>(static_cast<unsigned>(code))},
      message_internal::WordOf(first), message_internal::WordOf(rest)...);
}

// Returns the failure of a callee as the caller's own failure. `context`, if given, is put in front of the
// message.
inline Status Forward(const Status& failed) noexcept { return failed; }
template <typename T>
Status Forward(const Result<T>& failed) noexcept {
  return failed.status();
}
REWIRE_API Status Forward(const Status& failed, const Message& context);
template <typename T>
Status Forward(const Result<T>& failed, const Message& context) {
  return Forward(failed.status(), context);
}

}  // namespace rewire
