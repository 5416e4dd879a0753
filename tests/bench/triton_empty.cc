// SPDX-License-Identifier: Apache-2.0
//
// A backend for Triton that computes nothing, to measure what Triton itself takes: each request gets an
// output `y` of zeroes, f32[1, 10].
#include <cstdint>
#include <cstring>

#include "rewire/integrations/triton/backend_api.h"

namespace {

constexpr int kFloat32 = 11;  // Triton's number
constexpr std::int64_t kShape[] = {1, 10};
constexpr std::uint64_t kBytes = 40;

TRITONSERVER_Error* Answer(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Response* response = nullptr;
  TRITONBACKEND_Output* output = nullptr;
  void* data = nullptr;
  int memory = kTritonCpu;
  std::int64_t device = 0;
  TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, request);
  if (error == nullptr) error = TRITONBACKEND_ResponseOutput(response, &output, "y", kFloat32, kShape, 2);
  if (error == nullptr) error = TRITONBACKEND_OutputBuffer(output, &data, kBytes, &memory, &device);
  if (error != nullptr) return error;
  std::memset(data, 0, kBytes);
  return TRITONBACKEND_ResponseSend(response, kTritonResponseFinal, nullptr);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* /*instance*/, TRITONBACKEND_Request** requests, const std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (TRITONSERVER_Error* const error = Answer(requests[i]); error != nullptr) return error;
    if (TRITONSERVER_Error* const error = TRITONBACKEND_RequestRelease(requests[i], kTritonReleaseAll);
        error != nullptr) {
      return error;
    }
  }
  return nullptr;
}
