// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

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

Error::Error(StatusCode code, std::string message)
    : rep_(std::make_shared<const Rep>(Rep{code, std::move(message)})) {}

Error::Error(const Error& other) noexcept = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) noexcept = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

Error& Error::AddContext(const std::string& context) {
  rep_ = std::make_shared<const Rep>(Rep{rep_->code, Concat({context, ": ", rep_->message})});
  return *this;
}

tl::unexpected<Error> Fail(StatusCode code, const Message& message) {
  return Fail(Error(code, message.Text()));
}
tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace rewire
