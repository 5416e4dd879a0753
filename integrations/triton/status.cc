// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/status.h"

#include <cstddef>

namespace rewire::triton {
namespace {

int TritonCode(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kInvalidFile:
    case StatusCode::kVerificationFailed:
    case StatusCode::kLinkFailed:
      return kTritonInvalidArgument;
    case StatusCode::kNotFound:
      return kTritonNotFound;
    case StatusCode::kUnsupported:
      return kTritonUnsupported;
    case StatusCode::kBusy:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kDepthLimit:
    case StatusCode::kStepLimit:
    case StatusCode::kMemoryLimit:
    case StatusCode::kOutOfMemory:
      return kTritonUnavailable;
    case StatusCode::kCancelled:
      return kTritonCancelled;
    case StatusCode::kOk:
    case StatusCode::kIo:
    case StatusCode::kRuntimeFailed:
    case StatusCode::kKernelFailed:
    case StatusCode::kInternal:
      return kTritonInternal;
  }
  return kTritonInternal;
}

StatusCode CodeOf(int code) {
  switch (code) {
    case kTritonNotFound:
      return StatusCode::kNotFound;
    case kTritonInvalidArgument:
      return StatusCode::kInvalidArgument;
    case kTritonUnavailable:
      return StatusCode::kBusy;
    case kTritonUnsupported:
      return StatusCode::kUnsupported;
    case kTritonCancelled:
      return StatusCode::kCancelled;
    default:
      return StatusCode::kRuntimeFailed;
  }
}

void Log(int level, const char* text) {
  if (TRITONSERVER_Error* const error = TRITONSERVER_LogMessage(level, "rewire", 0, text); error != nullptr) {
    TRITONSERVER_ErrorDelete(error);
  }
}

}  // namespace

TRITONSERVER_Error* ErrorOf(const Status& status) {
  if (status) return nullptr;
  return TRITONSERVER_ErrorNew(TritonCode(status.code()), std::string(status.error().message()).c_str());
}

Status Taken(TRITONSERVER_Error* error) {
  if (error == nullptr) return {};
  Status status = Fail(CodeOf(TRITONSERVER_ErrorCode(error)), std::string(TRITONSERVER_ErrorMessage(error)));
  TRITONSERVER_ErrorDelete(error);
  return status;
}

void LogError(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  Log(kTritonLogError, TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

void LogWarning(const std::string& text) { Log(kTritonLogWarning, text.c_str()); }

LogSink TritonLog() {
  LogSink sink;
  sink.write = [](void*, const char* message, std::size_t size) {
    Log(kTritonLogInfo, std::string(message, size).c_str());
  };
  return sink;
}

}  // namespace rewire::triton
