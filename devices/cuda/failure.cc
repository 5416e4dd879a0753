// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/cuda/failure.h"

namespace rewire::cuda {
namespace {

// After these the driver gives the same error to every later call on the context.
bool IsLasting(CUresult error) {
  switch (error) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return true;
    default:
      return false;
  }
}

}  // namespace

int FailIn(const CudaDriver& driver, const char* function, CUresult error) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(error, &name) != CUDA_SUCCESS) name = nullptr;
  if (driver.cuGetErrorString(error, &text) != CUDA_SUCCESS) text = nullptr;
  const int code = error == CUDA_ERROR_OUT_OF_MEMORY   ? REWIRE_DEVICE_NO_MEMORY
                   : error == CUDA_ERROR_NOT_SUPPORTED ? REWIRE_DEVICE_UNSUPPORTED
                   : IsLasting(error)                  ? REWIRE_DEVICE_LOST
                                                       : REWIRE_DEVICE_FAILED;
  std::string words = std::string(function) + ": ";
  words += name != nullptr ? name : "CUDA error " + std::to_string(static_cast<unsigned>(error));
  if (text != nullptr) words += std::string(" (") + text + ")";
  return FailWith(code, std::move(words));
}

}  // namespace rewire::cuda
