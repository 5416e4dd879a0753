// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/status.h"

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

namespace rewire {

const char* StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kIo:
      return "input/output error";
    case StatusCode::kInvalidFile:
      return "invalid file";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kVerificationFailed:
      return "verification failed";
    case StatusCode::kLinkFailed:
      return "link failed";
    case StatusCode::kRuntimeFailed:
      return "run-time error";
    case StatusCode::kKernelFailed:
      return "kernel failed";
    case StatusCode::kDepthLimit:
      return "depth limit";
    case StatusCode::kStepLimit:
      return "step limit";
    case StatusCode::kMemoryLimit:
      return "memory limit";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kBusy:
      return "busy";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown status code";
}

// The message when there is no memory for another one: a std::string holds it without allocating.
constexpr char kOutOfMemory[] = "out of memory";

struct Error::Rep {
  std::atomic<std::uint32_t> references;
  StatusCode code;
  std::string message;

  void Retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

Error::Error(StatusCode code, std::string message) noexcept
    : rep_(new (std::nothrow) Rep{1, code, std::move(message)}) {
  if (rep_ != nullptr) return;
  // One that is always there: its first reference is never released.
  alignas(Rep) static std::byte place[sizeof(Rep)];
  static Rep* const kShared = new (place) Rep{1, StatusCode::kOutOfMemory, kOutOfMemory};
  rep_ = kShared;
  rep_->Retain();
}
Error::Error(Rep* shared) noexcept : rep_(shared) { rep_->Retain(); }
Error::Error(const Error& other) noexcept : Error(other.rep_) {}
// Retaining first makes self-assignment safe.
Error& Error::operator=(const Error& other) noexcept {  // NOLINT(bugprone-unhandled-self-assignment)
  other.rep_->Retain();
  rep_->Release();
  rep_ = other.rep_;
  return *this;
}
Error::~Error() { rep_->Release(); }

StatusCode Error::code() const noexcept { return rep_->code; }
const std::string& Error::message() const noexcept { return rep_->message; }
const char* Error::what() const noexcept { return rep_->message.c_str(); }

Error& Error::AddContext(const Message& context) {
  return *this = Error(code(), Format("{}: {}", context, message()));
}

namespace {

// A message that cannot be allocated becomes kOutOfMemory.
Error NewError(StatusCode code, const Message& message) noexcept {
#if defined(__cpp_exceptions)
  try {
    return Error(code, message.Text());
  } catch (const std::bad_alloc&) {
    return Error(StatusCode::kOutOfMemory, std::string(kOutOfMemory));
  }
#else
  return Error(code, message.Text());
#endif
}

}  // namespace

// The analyzer does not follow the count of references.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete)
Status::Status(const Error& error) noexcept : failure_(error.rep_) { Retain(); }

StatusCode Status::code() const noexcept { return failure_ == nullptr ? StatusCode::kOk : failure_->code; }

Error Status::error() const noexcept {
  if (failure_ != nullptr) return Error(failure_);
  return NewError(StatusCode::kInternal, "the error of a success was asked for");
}

void Status::Retain() const noexcept { failure_->Retain(); }
void Status::Release() const noexcept { failure_->Release(); }
// NOLINTEND(clang-analyzer-cplusplus.NewDelete)

Status Fail(StatusCode code, std::string text) noexcept { return Error(code, std::move(text)); }
Status Fail(StatusCode code, const char* text) noexcept { return Fail(code, Message(text)); }
Status Fail(StatusCode code, const Message& message) noexcept { return NewError(code, message); }

Status Forward(const Status& failed, const Message& context) { return failed.error().AddContext(context); }

}  // namespace rewire
