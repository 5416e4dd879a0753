// SPDX-License-Identifier: Apache-2.0
//
// Statuses, and how functions of the table become free of exceptions.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "rewire/base/status.h"
#include "rewire/onnxruntime_api/api.h"

struct OrtStatus {
  OrtErrorCode code;
  std::string message;
};

namespace rewire::onnxruntime_api {

// Returns a new status, or one in static storage if there is no memory.
OrtStatus* MakeStatus(OrtErrorCode code, std::string message) noexcept;
OrtStatus* OutOfMemory() noexcept;
OrtStatus* RefuseFunction(const char* name) noexcept;

// A failure of Rewire as a status. `code` overrides the code that stands for the failure's own.
OrtStatus* FromError(const Error& error) noexcept;
OrtStatus* FromError(const Error& error, OrtErrorCode code) noexcept;

inline OrtStatus* InvalidArgument(std::string message) noexcept {
  return MakeStatus(ORT_INVALID_ARGUMENT, std::move(message));
}

// Calls `work`, which returns a status, and makes statuses of what it throws. The standard library throws
// where memory runs out, and hosts in C must not see that.
template <typename Work>
OrtStatus* Guard(Work&& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& error) {
    return MakeStatus(ORT_RUNTIME_EXCEPTION, error.what());
  }
}

// The same for functions that return no status: what is thrown is dropped.
template <typename Work>
void Quietly(Work&& work) noexcept {
  try {
    work();
  } catch (const std::exception&) {  // NOLINT: there is nobody to tell
  }
}

}  // namespace rewire::onnxruntime_api
