// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/elements.h"

#include <algorithm>
#include <limits>
#include <string>

#include "rewire/kernels/cpu/support/convert.h"

namespace rewire::kernel::device {
namespace {

struct TypeRow {
  const char* name;
  DLDataType dtype;
  std::int64_t least, most;
};

template <typename T>
constexpr TypeRow RowOf(const char* name) {
  return {name, DTypeOf<T>(), std::int64_t{std::numeric_limits<T>::min()},
          std::int64_t{std::numeric_limits<T>::max()}};
}

// In the order of IntegerType.
constexpr TypeRow kTypes[] = {
    RowOf<std::uint8_t>("u8"),  RowOf<std::int8_t>("i8"),   RowOf<std::uint16_t>("u16"),
    RowOf<std::int16_t>("i16"), RowOf<std::int32_t>("i32"), RowOf<std::int64_t>("i64"),
    RowOf<bool>("bool"),
};

bool IsReal(DLDataType dtype) {
  return dtype.code == kDLFloat && (dtype.bits == 32 || dtype.bits == 16) && dtype.lanes == 1;
}

std::string NamesOf(ElementTypes types) {
  std::string names = (types & kReals) != 0 ? "f32, f16" : "";
  for (int type = kTypeReal - 1; type >= 0; --type) {
    if ((types >> type & 1) != 0) names += std::string(names.empty() ? "" : ", ") + kTypes[type].name;
  }
  return names;
}

}  // namespace

Status ElementTypeOf(const char* what, TensorView tensor, ElementTypes expected, IntegerType* type) {
  const DLDataType dtype = tensor.dtype();
  const bool real = IsReal(dtype);
  int found = real ? kTypeReal : 0;
  while (found < kTypeReal && !SameDType(kTypes[found].dtype, dtype)) ++found;
  const bool known = found < kTypeReal || real;
  *type = static_cast<IntegerType>(found);
  if (known && (expected >> found & 1) != 0) return Status();
  return TypeError(what, " is ", DTypeName(dtype), ", expected one of ", NamesOf(expected));
}

Status CheckF32(const char* what, TensorView tensor) {
  return tensor.Is<float>() ? Status() : TypeError(what, " is ", DTypeName(tensor.dtype()), ", expected f32");
}

Call ElementCall(TensorView x, IntegerType type, Program reals, const char* code, const char* integer_code) {
  return type == kTypeReal ? Call(x, reals, RealForm(x), code)
                           : Call(x, Program::kInteger, Form::kF32, integer_code);
}

std::int64_t LeastOf(IntegerType type) { return kTypes[type].least; }
std::int64_t MostOf(IntegerType type) { return kTypes[type].most; }

std::int64_t HeldIn(IntegerType type, double value) {
  return std::clamp(cpu::ToType<std::int64_t>(value), LeastOf(type), MostOf(type));
}

}  // namespace rewire::kernel::device
