// SPDX-License-Identifier: Apache-2.0
// Status and Result: how every function of Rewire reports failure.
//
// Library code returns them, prints nothing and never aborts. A failure gathers context while it travels up
// (Forward), so that its message reads from the outside in:
//   decode main@12 (invoke_packed): operand 2 names register 9, the frame has 6
// Error is also the exception that the throwing functions of the C++ door raise.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/export.h"
#include "base/message.h"

namespace rewire {

// Stable numbers: the C API and the exit codes of the tools show them.
enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,     // the caller gave a wrong name, index, dtype, shape or option
  kNotFound = 2,            // no such file, function, input, kernel library
  kIo = 3,                  // the operating system refused a read or a write
  kInvalidFile = 4,         // not an executable, or a damaged one
  kUnsupported = 5,         // well-formed, but newer than this library or needing a part it was built without
  kVerificationFailed = 6,  // an executable breaks a rule of docs/verification.md
  kLinkFailed = 7,          // kernels or parameters are missing or do not match
  kRuntimeFailed = 8,       // an instruction failed: shape, dtype, bounds, Fatal
  kKernelFailed = 9,        // a packed function returned an error
  kDepthLimit = 10,
  kStepLimit = 11,
  kMemoryLimit = 12,
  kDeadlineExceeded = 13,
  kCancelled = 14,
  kOutOfMemory = 15,  // the allocator returned nothing
  kBusy = 16,         // an object that serves one thread at a time is in use
  kInternal = 17,     // a fault of Rewire's own
};

// The name of a code in words, as in "invalid argument". Static storage.
REWIRE_API const char* StatusCodeName(StatusCode code);

// A failure: code and message. Copies share; AddContext changes this copy only. Threads may read one Error at
// once.
class REWIRE_API Error : public std::exception {
 public:
  Error(StatusCode code, std::string message) noexcept;
  Error(const Error& other) noexcept;
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other) noexcept;
  Error& operator=(Error&& other) noexcept;
  ~Error() override;

  StatusCode code() const noexcept;
  const std::string& message() const noexcept;
  const char* what() const noexcept override;

  // Puts "context: " before the message; the code stays.
  Error& AddContext(const Message& context);

 private:
  struct Rep;

  Rep* rep_;
};

// Success, or a failure: its code, and where its words are. One machine word without an owner, so that
// functions return it in a register and dropping it costs nothing. Each thread keeps the words of its last 64
// failures, for all threads to read, also when it has ended; who holds a failure for longer takes its
// error(). Threads may use one Status at once.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  REWIRE_API Status(const Error& error) noexcept;

  explicit operator bool() const noexcept { return bits_ == 0; }
  bool has_value() const noexcept { return bits_ == 0; }
  StatusCode code() const noexcept { return static_cast<StatusCode>(bits_ & kCodeMask); }
  // Of a failure only. Where its words are gone, the message says so.
  REWIRE_API Error error() const noexcept;

 private:
  static constexpr unsigned kCodeBits = 8;
  static constexpr unsigned kRingBits = 10;
  static constexpr std::uint64_t kCodeMask = (1U << kCodeBits) - 1;
  static constexpr std::uint64_t kRingMask = (1U << kRingBits) - 1;

  std::uint64_t bits_ =
      0;  // from the lowest: the code, the ring (status.cc), the number of the failure in it
};

namespace status_internal {
// A Status and, where that is success, a T. What is copied by its bytes stays so in a Result.
template <typename T, bool = std::is_trivially_copyable_v<T>>
struct ResultParts {
  ResultParts(Status failure) noexcept : status_(failure), none_() {}
  template <typename U>
  ResultParts(std::in_place_t, U&& value) : value_(std::forward<U>(value)) {}

  Status status_;
  union {
    T value_;
    char none_;
  };
};
template <typename T>
struct ResultParts<T, false> {
  ResultParts(Status failure) noexcept : status_(failure), none_() {
    // Compilers that do not see that Fail never succeeds would warn that what is moved was not initialised.
    // This does nothing, and they cannot know.
    asm("" : "=m"(value_));
  }
  template <typename U>
  ResultParts(std::in_place_t, U&& value) : value_(std::forward<U>(value)) {}
  ResultParts(const ResultParts& other) : status_(other.status_), none_() {
    if (status_) new (&value_) T(other.value_);
  }
  ResultParts(ResultParts&& other) noexcept : status_(other.status_), none_() {
    if (status_) new (&value_) T(std::move(other.value_));
  }
  ResultParts& operator=(ResultParts other) noexcept {
    this->~ResultParts();
    // Which is *this.
    return *new (this) ResultParts(std::move(other));  // NOLINT(misc-unconventional-assign-operator)
  }
  ~ResultParts() {
    if (status_) value_.~T();
  }

  Status status_;
  union {
    T value_;
    char none_;
  };
};
}  // namespace status_internal

// A T, or a failure: what a function that makes a T returns.
template <typename T>
class [[nodiscard]] Result : private status_internal::ResultParts<T> {
  using Parts = status_internal::ResultParts<T>;
  using Parts::status_;
  using Parts::value_;

 public:
  template <typename U = T, typename = std::enable_if_t<std::is_convertible_v<U&&, T> &&
                                                        !std::is_same_v<std::decay_t<U>, Result> &&
                                                        !std::is_same_v<std::decay_t<U>, Status>>>
  Result(U&& value) : Parts(std::in_place, std::forward<U>(value)) {}
  // A failure: what Fail and Forward return. Success has no T to give and is a fault of the caller's.
  Result(Status failure) noexcept : Parts(failure) {}

  explicit operator bool() const noexcept { return static_cast<bool>(status_); }
  bool has_value() const noexcept { return static_cast<bool>(status_); }

  // Of a success only.
  T& operator*() & noexcept { return value_; }
  const T& operator*() const& noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return std::addressof(value_); }
  const T* operator->() const noexcept { return std::addressof(value_); }
  template <typename U>
  T value_or(U&& other) const& {
    return status_ ? value_ : static_cast<T>(std::forward<U>(other));
  }

  // Of a failure only.
  Error error() const noexcept { return status_.error(); }
  Status status() const noexcept { return status_; }
};

// What a function returns to fail. The text has a place, "{}", for each argument, a text or an integer:
//   return Fail(StatusCode::kInvalidArgument, "rank {} given, 0 to {} expected", rank, kMaxRank);
// Cold, so that the branch that leads here is laid out away from the code that runs.
[[gnu::cold]] REWIRE_API Status Fail(StatusCode code, const Message& message) noexcept;
[[gnu::cold]] REWIRE_API Status Fail(StatusCode code, const char* text) noexcept;
[[gnu::cold]] REWIRE_API Status Fail(StatusCode code, std::string text) noexcept;
inline Status Fail(const Error& error) noexcept { return error; }

namespace message_internal {
// One function for each number of arguments; the code is the layout's tag.
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

// Passes a failed Status or Result on as the caller's own, optionally with context in front.
inline Status Forward(Status failed) noexcept { return failed; }
template <typename T>
Status Forward(const Result<T>& failed) noexcept {
  return failed.status();
}
REWIRE_API Status Forward(Status failed, const Message& context);
template <typename T>
Status Forward(const Result<T>& failed, const Message& context) {
  return Forward(failed.status(), context);
}

}  // namespace rewire
