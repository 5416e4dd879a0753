// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/call_arguments.h"

#include <algorithm>
#include <array>
#include <limits>

namespace rewire::compiler {
namespace {

struct Bit {
  std::uint32_t bit;
  DLDataType dtype;
};

const std::array<Bit, 13> kBits = {{{REWIRE_DTYPE_F32, kFloat32},
                                    {REWIRE_DTYPE_F64, kFloat64},
                                    {REWIRE_DTYPE_F16, kFloat16},
                                    {REWIRE_DTYPE_BF16, MakeDType(kBFloat, 16)},
                                    {REWIRE_DTYPE_I8, kInt8},
                                    {REWIRE_DTYPE_I16, MakeDType(kInt, 16)},
                                    {REWIRE_DTYPE_I32, kInt32},
                                    {REWIRE_DTYPE_I64, kInt64},
                                    {REWIRE_DTYPE_U8, kUInt8},
                                    {REWIRE_DTYPE_U16, MakeDType(kUInt, 16)},
                                    {REWIRE_DTYPE_U32, MakeDType(kUInt, 32)},
                                    {REWIRE_DTYPE_U64, MakeDType(kUInt, 64)},
                                    {REWIRE_DTYPE_BOOL, kBool8}}};

}  // namespace

CallSide::CallSide(const RewireKernelRow& row, bool written, std::size_t values) : values_(values) {
  for (std::uint32_t i = 0; i < row.argument_count; ++i) {
    if (((row.arguments[i].flags & REWIRE_ARGUMENT_WRITTEN) != 0) == written)
      arguments_.push_back(&row.arguments[i]);
  }
}

std::size_t CallSide::room() const {
  const bool list = std::any_of(
      arguments_.begin(), arguments_.end(),
      [](const RewireKernelArgument* argument) { return (argument->flags & REWIRE_ARGUMENT_LIST) != 0; });
  return list ? std::numeric_limits<std::size_t>::max() : arguments_.size();
}

bool IsNarrow(DLDataType dtype) {
  if (dtype.code == kInt || dtype.code == kUInt) return dtype.bits == 4 || dtype.bits == 2;
  return dtype.code >= kFloat8E4M3FN && dtype.code <= kFloat4E2M1FN;
}

bool Accepts(const RewireKernelArgument& argument, DLDataType dtype) {
  const std::uint32_t set = argument.dtypes;
  if (set == 0) return true;
  for (const Bit& known : kBits) {
    if (known.dtype == dtype) return (set & known.bit) != 0;
  }
  if ((set & REWIRE_DTYPE_NARROW) != 0 && IsNarrow(dtype)) return true;
  if ((set & REWIRE_DTYPE_OTHER_16) != 0) return ElementBytes(dtype) <= 16;
  return (set & REWIRE_DTYPE_OTHER_8) != 0 && ElementBytes(dtype) <= 8;
}

std::string DTypesText(std::uint32_t set) {
  std::string text;
  for (const Bit& known : kBits) {
    if ((set & known.bit) != 0) text += (text.empty() ? "" : " ") + DTypeName(known.dtype);
  }
  if ((set & REWIRE_DTYPE_NARROW) != 0) text += " and those of fewer bits";
  return text;
}

bool IsMissing(const RewireKernelArgument& argument, const Value& value) {
  return (argument.flags & REWIRE_ARGUMENT_OPTIONAL) != 0 && value.IsConstant() &&
         value.constant->bytes.view.empty();
}

bool HaveOneDType(const RewireKernelRow& row, const RewireKernelArgument& argument) {
  const std::uint32_t loose = REWIRE_ARGUMENT_WRITTEN | REWIRE_ARGUMENT_ONE_ELEMENT;
  return argument.dtype_group != 0 && (argument.flags & loose) == 0 &&
         (row.traits & REWIRE_KERNEL_SHAPE) == 0;
}

}  // namespace rewire::compiler
