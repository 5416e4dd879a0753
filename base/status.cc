// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

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

// What is said when there is no memory to say more: a std::string holds it without allocating.
constexpr char kOutOfMemory[] = "out of memory";

struct Error::Rep {
  std::atomic<std::uint32_t> references;
  StatusCode code;
  std::string message;
};

Error::Error(StatusCode code, std::string message) noexcept
    : rep_(new (std::nothrow) Rep{1, code, std::move(message)}) {
  if (rep_ != nullptr) return;
  // One that is always there, and never released for good.
  alignas(Rep) static std::byte place[sizeof(Rep)];
  static Rep* const kShared = new (place) Rep{1, StatusCode::kOutOfMemory, kOutOfMemory};
  rep_ = kShared;
  Status::Retain(rep_);
}
Error::Error(const Error& other) noexcept : rep_(other.rep_) { Status::Retain(rep_); }
// What was moved from stays an error, which its code and message may be asked of.
Error::Error(Error&& other) noexcept : rep_(other.rep_) { Status::Retain(rep_); }
Error& Error::operator=(const Error& other) noexcept {
  if (this == &other) return *this;
  Status::Retain(other.rep_);
  if (rep_ != nullptr) Status::Release(rep_);
  rep_ = other.rep_;
  return *this;
}
Error& Error::operator=(Error&& other) noexcept { return *this = other; }
Error::~Error() {
  if (rep_ != nullptr) Status::Release(rep_);
}

StatusCode Error::code() const noexcept { return rep_->code; }
const std::string& Error::message() const noexcept { return rep_->message; }
const char* Error::what() const noexcept { return rep_->message.c_str(); }

Error& Error::AddContext(const std::string& context) {
  return *this = Error(code(), Format("{}: {}", context, message()));
}

Error Status::error() const noexcept {
  Retain(rep_);
  return Error(rep_);
}
void Status::Retain(Error::Rep* rep) noexcept { rep->references.fetch_add(1, std::memory_order_relaxed); }
void Status::Release(Error::Rep* rep) noexcept {
  if (rep->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete rep;
}

Status Fail(StatusCode code, std::string text) noexcept { return Error(code, std::move(text)); }
Status Fail(StatusCode code, const char* text) noexcept { return Fail(code, Message(text)); }
Status Fail(StatusCode code, const Message& message) noexcept {
#if defined(__cpp_exceptions)
  try {
    return Fail(code, message.Text());
  } catch (const std::bad_alloc&) {
    return Fail(StatusCode::kOutOfMemory, std::string(kOutOfMemory));
  }
#else
  return Fail(code, message.Text());
#endif
}

Status Forward(const Status& failed, const std::string& context) {
  return failed.error().AddContext(context);
}

}  // namespace rewire
