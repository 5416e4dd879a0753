// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/call_check.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <vector>

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

bool Contains(std::uint32_t set, DLDataType dtype) {
  for (const Bit& known : kBits) {
    if (known.dtype == dtype) return (set & known.bit) != 0;
  }
  if ((set & REWIRE_DTYPE_OTHER_16) != 0) return ElementBytes(dtype) <= 16;
  return (set & REWIRE_DTYPE_OTHER_8) != 0 && ElementBytes(dtype) <= 8;
}

std::string SetText(std::uint32_t set) {
  std::string text;
  for (const Bit& known : kBits) {
    if ((set & known.bit) != 0) text += (text.empty() ? "" : " ") + DTypeName(known.dtype);
  }
  return text;
}

// The values of a call by the arguments of one side of the row. Without a list, they go one by one, and the
// last ones may be left out; a list takes as many as the others leave.
class Side {
 public:
  Side(const RewireKernelRow& row, bool written, const std::vector<Value*>& values) : values_(values) {
    for (std::uint32_t i = 0; i < row.argument_count; ++i) {
      if (((row.arguments[i].flags & REWIRE_ARGUMENT_WRITTEN) != 0) == written)
        arguments_.push_back(&row.arguments[i]);
    }
  }

  // `what` names the values: "inputs".
  Status CheckCount(const char* what, const std::string& kernel) const {
    for (const RewireKernelArgument* argument : arguments_) {
      if ((argument->flags & REWIRE_ARGUMENT_LIST) != 0) return {};
    }
    if (values_.size() <= arguments_.size()) return {};
    return Fail(StatusCode::kUnsupported, fmt::format("{}: {} {} are given, expected at most {}", kernel,
                                                      values_.size(), what, arguments_.size()));
  }

  // Calls `visit` with each value and its argument.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < arguments_.size() && next < values_.size(); ++i) {
      std::size_t count = 1;
      if ((arguments_[i]->flags & REWIRE_ARGUMENT_LIST) != 0) {
        const std::size_t behind = arguments_.size() - i - 1, left = values_.size() - next;
        count = left > behind ? left - behind : 0;
      }
      for (; count > 0; --count) visit(*arguments_[i], values_[next++]);
    }
  }

 private:
  const std::vector<Value*>& values_;
  std::vector<const RewireKernelArgument*> arguments_;
};

// What stands for an optional argument that is left out in the middle.
bool IsMissing(const RewireKernelArgument& argument, const Value& value) {
  return (argument.flags & REWIRE_ARGUMENT_OPTIONAL) != 0 && value.IsConstant() &&
         value.constant->bytes.view.empty();
}

// Whether all arguments of the argument's group have one dtype. Of single numbers and of shapes, whose
// kernels convert them, the group only says that they may have the same dtypes; so it does of what is written
// (cast).
bool HaveOneType(const RewireKernelRow& row, const RewireKernelArgument& argument) {
  const std::uint32_t loose = REWIRE_ARGUMENT_WRITTEN | REWIRE_ARGUMENT_ONE_ELEMENT;
  return argument.dtype_group != 0 && (argument.flags & loose) == 0 &&
         (row.traits & REWIRE_KERNEL_SHAPE) == 0;
}

}  // namespace

Status CheckCall(const Node& node, const RewireKernelRow& row) {
  if (row.arguments == nullptr) return {};
  const Side read(row, false, node.inputs), written(row, true, node.outputs);
  if (Status ok = read.CheckCount("inputs", node.kernel); !ok) return ok;
  if (Status ok = written.CheckCount("outputs", node.kernel); !ok && !node.returns) return ok;
  struct Group {
    std::string name;
    DLDataType dtype;
  };
  std::map<int, Group> groups;
  Status checked;
  const auto check = [&](const RewireKernelArgument& argument, const Value* value) {
    if (!checked || value == nullptr || !value->type.IsTensor() || IsMissing(argument, *value)) return;
    const std::string name(argument.name, argument.name_bytes);
    const DLDataType dtype = value->type.dtype;
    if (argument.dtypes != 0 && !Contains(argument.dtypes, dtype)) {
      checked = Fail(StatusCode::kUnsupported, fmt::format("{}: {} is {}, expected one of {}", node.kernel,
                                                           name, DTypeName(dtype), SetText(argument.dtypes)));
      return;
    }
    if (!HaveOneType(row, argument)) return;
    const auto [place, added] = groups.try_emplace(argument.dtype_group, Group{name, dtype});
    if (added || place->second.dtype == dtype) return;
    checked = Fail(StatusCode::kUnsupported,
                   fmt::format("{}: {} is {} and {} is {}, expected one type", node.kernel,
                               place->second.name, DTypeName(place->second.dtype), name, DTypeName(dtype)));
  };
  read.ForEach(check);
  if (!node.returns) written.ForEach(check);
  return checked;
}

}  // namespace rewire::compiler
