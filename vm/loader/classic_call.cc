// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/classic_call.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "rewire/base/dtype.h"
#include "rewire/base/likely.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/loader/classic_library.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

constexpr std::int32_t kArgsOnStack = 32;

// The arguments of a call in classic form.
struct ClassicArgs {
  ClassicValue values[kArgsOnStack];
  int codes[kArgsOnStack];
  DLTensor tensors[kArgsOnStack];
};

// Compiled code compares given strides with the shape's one by one, also where a dimension of 1 or 0 makes
// them meaningless. Field by field: the VM has just written some of them, and a wider load would have to
// wait.
void WriteClassic(const DLTensor& tensor, DLTensor* classic) {
  classic->data = tensor.data;
  SetDeviceType(&classic->device, DeviceTypeOf(tensor.device));
  classic->device.device_id = tensor.device.device_id;
  classic->ndim = tensor.ndim;
  classic->dtype = tensor.dtype == kBool8 ? kClassicBoolElement : tensor.dtype;
  classic->shape = tensor.shape;
  classic->strides = IsContiguous(tensor) ? nullptr : tensor.strides;
  classic->byte_offset = tensor.byte_offset;
}

// False when the classic ABI has no such argument. `tensor` has room for one.
bool Convert(const RewireFFIAny& arg, ClassicValue* value, int* code, DLTensor* tensor) {
  if (const DLTensor* given = RewireTensorOf(&arg); given != nullptr) {
    WriteClassic(*given, tensor);
    value->v_handle = tensor;
    *code = kClassicDLTensor;
    return true;
  }
  value->v_int64 = arg.v_int64;  // the bits of most others
  switch (arg.type_index) {
    case kRewireFFINone:
      value->v_handle = nullptr;
      *code = kClassicNull;
      return true;
    case kRewireFFIInt:
    case kRewireFFIBool:
      *code = kClassicInt;
      return true;
    case kRewireFFIFloat:
      *code = kClassicFloat;
      return true;
    case kRewireFFIOpaquePtr:
      *code = kClassicOpaqueHandle;
      return true;
    case kRewireFFIDataType:
      *code = kClassicDataType;
      return true;
    case kRewireFFIDevice:
      *code = kClassicDevice;
      return true;
    case kRewireFFIRawStr:
      *code = kClassicStr;
      return true;
    default:
      return false;
  }
}

int RaiseTypeError(const Message& message) {
  SetKernelError("TypeError", message.Text().c_str());
  return -1;
}

int TakeResult(const ClassicValue& value, int code, RewireFFIAny* result) {
  switch (code) {
    case kClassicNull:
      return 0;
    case kClassicInt:
      result->type_index = kRewireFFIInt;
      break;
    case kClassicBool:
      result->type_index = kRewireFFIBool;
      break;
    case kClassicFloat:
      result->type_index = kRewireFFIFloat;
      break;
    default:
      return RaiseTypeError(
          {"it returned a value of the classic type code {}; functions that TVM compiled return a number or "
           "nothing",
           code});
  }
  result->v_int64 = value.v_int64;
  return 0;
}

int Call(const ClassicLibrary::Entry& entry, const RewireFFIAny* args, std::int32_t num_args,
         ClassicValue* values, int* codes, DLTensor* tensors, RewireFFIAny* result) {
  for (std::int32_t i = 0; i < num_args; ++i) {
    if (!Convert(args[i], &values[i], &codes[i], &tensors[i])) {
      return RaiseTypeError({"argument {}: a function of the classic TVM ABI takes no {}", i,
                             kernel::TypeIndexName(args[i].type_index)});
    }
  }
  ClassicValue returned{};
  int code = kClassicNull;
  if (entry.function(values, codes, num_args, &returned, &code, nullptr) != 0) return -1;
  return TakeResult(returned, code, result);
}

}  // namespace

int CallClassic(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  const auto& entry = *static_cast<const ClassicLibrary::Entry*>(handle);
  if (REWIRE_UNLIKELY(num_args > kArgsOnStack)) {
    const auto count = static_cast<std::size_t>(num_args);
    const auto values = std::make_unique<ClassicValue[]>(count);
    const auto codes = std::make_unique<int[]>(count);
    const auto tensors = std::make_unique<DLTensor[]>(count);
    return Call(entry, args, num_args, values.get(), codes.get(), tensors.get(), result);
  }
  ClassicArgs room;
  return Call(entry, args, num_args, room.values, room.codes, room.tensors, result);
}

int ClassicFuncCall(void* function, ClassicValue* args, int* codes, int num_args, ClassicValue* result,
                    int* result_code) {
  *result_code = kClassicNull;
  const auto& entry = *static_cast<const ClassicLibrary::Entry*>(function);
  if (entry.kernel != nullptr) {
    std::uint64_t values[DeviceCode::kMostArguments];
    for (std::int32_t i = 0; i < std::min(num_args, DeviceCode::kMostArguments); ++i) {
      std::memcpy(&values[i], &args[i], sizeof(values[i]));
    }
    return DeviceCode::Launch(*entry.kernel, values, num_args);
  }
  return entry.function(args, codes, num_args, result, result_code, nullptr);
}

void ClassicSetLastError(const char* message) { SetKernelError("", message); }

}  // namespace rewire
