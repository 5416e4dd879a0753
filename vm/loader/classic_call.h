// SPDX-License-Identifier: Apache-2.0
// Calls between packed functions and functions of the classic TVM ABI.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/loader/tvm_runtime/classic_abi.h"

namespace rewire {

// A RewirePackedFunction whose handle is a ClassicLibrary::Entry. Tensors are passed as DLTensor*, with
// booleans as uint1 and without strides that add nothing to the shape. Fails on arguments that the classic
// ABI cannot express, and if the function returns an object.
int CallClassic(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result);

// Implements TVMFuncCall: calls a function handle, which is a ClassicLibrary::Entry, from code of the classic
// ABI.
int ClassicFuncCall(void* function, ClassicValue* args, int* codes, int num_args, ClassicValue* result,
                    int* result_code);

// Implements TVMAPISetLastError: sets Rewire's error of the calling thread.
void ClassicSetLastError(const char* message);

}  // namespace rewire
