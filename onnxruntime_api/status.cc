// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/status.h"

#include "rewire/onnxruntime_api/functions.h"

namespace rewire::onnxruntime_api {
namespace {

OrtErrorCode CodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return ORT_INVALID_ARGUMENT;
    case StatusCode::kNotFound:
      return ORT_NO_SUCHFILE;
    case StatusCode::kInvalidFile:
    case StatusCode::kVerificationFailed:
      return ORT_INVALID_PROTOBUF;
    case StatusCode::kUnsupported:
      return ORT_NOT_IMPLEMENTED;
    default:
      return ORT_FAIL;
  }
}

// Never released: a status of it is given out when there is no memory for another.
OrtStatus* NoMemoryStatus() {
  static OrtStatus* const status = new OrtStatus{ORT_RUNTIME_EXCEPTION, "memory is exhausted"};
  return status;
}
OrtStatus* const no_memory = NoMemoryStatus();

}  // namespace

OrtStatus* OutOfMemory() noexcept { return no_memory; }

OrtStatus* MakeStatus(OrtErrorCode code, std::string message) noexcept {
  OrtStatus* const status = new (std::nothrow) OrtStatus{code, std::move(message)};
  return status == nullptr ? no_memory : status;
}

OrtStatus* RefuseFunction(const char* name) noexcept {
  return Guard([&] {
    return MakeStatus(ORT_NOT_IMPLEMENTED, std::string(name) +
                                               " is not served by Rewire's libonnxruntime; its page, "
                                               "onnxruntime-api.md, lists what is");
  });
}

OrtStatus* FromError(const Error& error) noexcept { return FromError(error, CodeOf(error.code())); }
OrtStatus* FromError(const Error& error, OrtErrorCode code) noexcept {
  return Guard([&] { return MakeStatus(code, error.message()); });
}

OrtStatus* CreateStatus(OrtErrorCode code, const char* message) noexcept {
  if (code == ORT_OK) return nullptr;
  return Guard([&] { return MakeStatus(code, message); });
}
OrtErrorCode GetErrorCode(const OrtStatus* status) noexcept {
  return status == nullptr ? ORT_OK : status->code;
}
const char* GetErrorMessage(const OrtStatus* status) noexcept {
  return status == nullptr ? "" : status->message.c_str();
}
void ReleaseStatus(OrtStatus* status) noexcept {
  if (status != no_memory) delete status;
}

}  // namespace rewire::onnxruntime_api
