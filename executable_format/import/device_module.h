// SPDX-License-Identifier: Apache-2.0
//
// Reads the device code that TVM puts into an exported library, beside the machine code that calls it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/byte_reader.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/types.h"

namespace rewire::tvm {

// A kernel of the module. Its host function calls it with its arguments, followed by one integer for each
// launch tag that has a value.
struct DeviceKernel {
  std::string name;
  Array<DLDataType> arguments;     // kDLOpaqueHandle for an address of the device
  Array<std::string> launch_tags;  // "blockIdx.x", "threadIdx.y", ...
  bool has_tensor_maps = false;    // an argument is a descriptor that the host must make (CUDA)
};

struct DeviceModule {
  std::string kind;    // "opencl", "cuda"
  std::string format;  // of the code: "cl", "ptx", "cubin", "fatbin", "cuda"
  Array<DeviceKernel> kernels;
  Span<const std::byte> code;  // a part of the bytes that were read
};

// The content of a module, as libraries of the classic ABI (TVM up to 0.20) and of tvm-ffi have it. Newer
// ones say more of each kernel.
enum class DeviceModuleForm { kClassic, kTvmFfi };

// True if modules of this kind are device code that ReadDeviceModule reads.
bool IsDeviceModule(std::string_view kind);

// Reads a module's content, which stands behind its kind. Errors: kInvalidFile if the bytes end too early.
Result<DeviceModule> ReadDeviceModule(std::string_view kind, DeviceModuleForm form, ByteReader& reader);

}  // namespace rewire::tvm
