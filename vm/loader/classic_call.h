// SPDX-License-Identifier: Apache-2.0
// Calls between packed functions and functions of the classic TVM ABI.
#pragma once

#include <cstdint>

#include "vm/kernel/ffi_abi.h"
#include "vm/loader/classic_abi.h"

namespace rewire {

// A RewirePackedFunction whose handle is a ClassicLibrary::Entry. Tensors are passed as DLTensor*, booleans
// in them as uint1, strides left out where they say no more than the shape. Fails on arguments that the
// classic ABI has no code for, and when the function returns an object.
int CallClassic(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result);

// TVMFuncCall: calls a function handle, a ClassicLibrary::Entry, from code of the classic ABI.
int ClassicFuncCall(void* function, ClassicValue* args, int* codes, int num_args, ClassicValue* result,
                    int* result_code);

// TVMAPISetLastError: becomes Rewire's error of the calling thread.
void ClassicSetLastError(const char* message);

}  // namespace rewire
