// SPDX-License-Identifier: Apache-2.0
//
// Finds dtypes in which a kernel can do a call whose own dtypes its row does not list. This is the only place
// that decides about such casts. So float16 and bfloat16 run on every kernel: the tensors of the model have
// 16 bits, and a kernel without them computes in f32.
//
// A cast to a wider dtype is exact: f16 and bf16 to f32 or f64, f32 to f64, integers to wider integers. What
// the kernel writes is cast back. For floats this rounds once, which is what ONNX asks of an operator. For
// integers it wraps, as the narrow arithmetic would have done.
#pragma once

#include <optional>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::compiler {

// One dtype for each input and output of a call.
struct CallDTypes {
  std::vector<DLDataType> inputs, outputs;
};

// nullopt if the kernel takes the call as it is, and if no exact casts make it fit. Missing inputs (null) and
// values that are no tensors keep their dtypes. `returns` says that the kernel allocates its output itself.
std::optional<CallDTypes> CastsForCall(const RewireKernelRow& row, const std::vector<Value*>& inputs,
                                       const std::vector<Type>& outputs, bool returns);

}  // namespace rewire::compiler
