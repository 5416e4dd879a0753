// SPDX-License-Identifier: Apache-2.0
// The calling convention of functions that TVM up to 0.20 compiled.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

namespace rewire {

union ClassicValue {
  std::int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
};
static_assert(sizeof(ClassicValue) == 8);

// The codes of the types that an argument or a result may have.
enum ClassicTypeCode : int {
  kClassicInt = 0,
  kClassicUInt = 1,
  kClassicFloat = 2,
  kClassicOpaqueHandle = 3,
  kClassicNull = 4,
  kClassicDataType = 5,
  kClassicDevice = 6,
  kClassicDLTensor = 7,
  kClassicObject = 8,
  kClassicModule = 9,
  kClassicPackedFunc = 10,
  kClassicStr = 11,
  kClassicBytes = 12,
  kClassicNDArray = 13,
  kClassicRValueRef = 14,
  kClassicBool = 15,
};

// Returns 0, or -1 with the message passed to TVMAPISetLastError. The caller sets *result_code to
// kClassicNull before the call.
using ClassicFunction = int (*)(ClassicValue* args, int* codes, int num_args, ClassicValue* result,
                                int* result_code, void* resource);

// The dtype of a boolean element in that ABI.
inline constexpr DLDataType kClassicBoolElement = {1, 1, 1};

}  // namespace rewire
