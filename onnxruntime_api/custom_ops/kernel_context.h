// SPDX-License-Identifier: Apache-2.0
//
// OrtKernelContext: one call of a custom operator's kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/onnxruntime_api/custom_ops/kernel_info.h"
#include "rewire/onnxruntime_api/values/value.h"
#include "rewire/vm/kernel/kernel.h"

struct OrtKernelContext {
  // Inputs lie in the memory of the VM, outputs are made in it. Arguments are borrowed for the call.
  explicit OrtKernelContext(const OrtKernelInfo& info);
  ~OrtKernelContext();
  OrtKernelContext(const OrtKernelContext&) = delete;
  OrtKernelContext& operator=(const OrtKernelContext&) = delete;

  struct Output {
    RewireFFIAny object{};  // owned; none for strings
    OrtValue value;         // null body: it was not made
  };
  // Reads the arguments of the call. Errors: kRuntimeFailed.
  rewire::Status Read(const RewireFFIAny* args, std::int32_t count);
  // Gives the outputs to the caller: one tensor as it is, several as a tuple. Strings are three tensors.
  // Returns 0, or -1 with the error set.
  int Return(RewireFFIAny* result);

  const OrtKernelInfo& info;
  std::vector<OrtValue> inputs;  // null body: the node leaves it out
  std::vector<Output> outputs;
};
