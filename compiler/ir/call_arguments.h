// SPDX-License-Identifier: Apache-2.0
//
// The values of a kernel call beside the arguments of the kernel's row (vm/kernel/row.h): which value is
// which argument, and which dtypes an argument accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::compiler {

// The values of a call on one side of the row: those that are read, or those that are written. Without a
// list, they go one by one, and the last ones may be left out. A list takes as many as the others leave.
class CallSide {
 public:
  CallSide(const RewireKernelRow& row, bool written, std::size_t values);

  // How many values the side has room for. SIZE_MAX with a list.
  std::size_t room() const;

  // Calls `visit` with each value's argument and position.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < arguments_.size() && next < values_; ++i) {
      std::size_t count = 1;
      if ((arguments_[i]->flags & REWIRE_ARGUMENT_LIST) != 0) {
        const std::size_t behind = arguments_.size() - i - 1, left = values_ - next;
        count = left > behind ? left - behind : 0;
      }
      for (; count > 0; --count) visit(*arguments_[i], next++);
    }
  }

 private:
  std::size_t values_;
  std::vector<const RewireKernelArgument*> arguments_;
};

// True for floats of 8 and 4 bits and integers of 4 and 2 (REWIRE_DTYPE_NARROW). Few kernels compute with
// them. ONNX packs those of less than 8 bits; here each has a byte.
bool IsNarrow(DLDataType dtype);

// True if the argument lists the dtype, or lists none.
bool Accepts(const RewireKernelArgument& argument, DLDataType dtype);
// The dtypes of a set: "f32 f64".
std::string DTypesText(std::uint32_t set);

// True for what stands in place of an optional argument that is left out in the middle.
bool IsMissing(const RewireKernelArgument& argument, const Value& value);

// True if all arguments of the argument's group must have one dtype. Kernels convert single numbers and
// shapes themselves, so for these the group only says that the same dtypes are possible. So it does for what
// is written (rewire.cast).
bool HaveOneDType(const RewireKernelRow& row, const RewireKernelArgument& argument);

}  // namespace rewire::compiler
