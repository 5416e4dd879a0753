// SPDX-License-Identifier: Apache-2.0
// Status and Result: how every function of Rewire reports failure.
//
// Library code returns them, prints nothing and never aborts. An Error is one pointer; success carries none.
// An error gathers context while it travels up (AddContext), so that its message reads from the outside in:
//   decode main@12 (invoke_packed): operand 2 names register 9, the frame has 6
// Error is also the exception that the throwing functions of the C++ door raise.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <tl/expected.hpp>

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
  Error(StatusCode code, std::string message);
  // Out of line, like all that an error is made of: whatever can fail holds these at every call.
  Error(const Error& other) noexcept;
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other) noexcept;
  Error& operator=(Error&& other) noexcept;
  ~Error() override;

  StatusCode code() const noexcept { return rep_->code; }
  const std::string& message() const noexcept { return rep_->message; }
  const char* what() const noexcept override { return rep_->message.c_str(); }

  // Puts "context: " before the message; the code stays.
  Error& AddContext(const std::string& context);

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// What a function returns to fail: converts to Status and to any Result. The pieces of a message stand in
// braces: Fail(code, {"rank ", rank, " given"}). Cold, so that the branch that leads here, with the words of
// its message, is laid out for size and away from the code that runs.
[[gnu::cold]] REWIRE_API tl::unexpected<Error> Fail(StatusCode code, const Message& message);
[[gnu::cold]] REWIRE_API tl::unexpected<Error> Fail(Error error);

// Passes a failed Status or Result on as the caller's own, optionally with context in front.
template <typename T>
tl::unexpected<Error> Forward(const Result<T>& failed) {
  return tl::unexpected<Error>(failed.error());
}
template <typename T>
tl::unexpected<Error> Forward(const Result<T>& failed, const std::string& context) {
  return tl::unexpected<Error>(Error(failed.error()).AddContext(context));
}

}  // namespace rewire
