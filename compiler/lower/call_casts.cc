// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/call_casts.h"

#include <map>
#include <utility>

#include "rewire/compiler/ir/call_arguments.h"

namespace rewire::compiler {
namespace {

// True if every number of the narrow dtype is one of the wide dtype, and rewire.cast takes both.
bool IsWider(DLDataType wide, DLDataType narrow) {
  if (narrow.bits < 8) return false;
  if (wide.lanes != narrow.lanes || wide.bits <= narrow.bits) return false;
  const auto is_float = [](DLDataType dtype) { return dtype.code == kFloat || dtype.code == kBFloat; };
  if (is_float(narrow)) return wide.code == kFloat && wide.bits >= 32;
  if (narrow.code == kUInt) return wide.code == kUInt || wide.code == kInt;
  return narrow.code == kInt && wide.code == kInt;
}

// The narrowest wider dtype that the argument accepts.
std::optional<DLDataType> WiderDType(const RewireKernelArgument& argument, DLDataType narrow) {
  for (const int bits : {16, 32, 64}) {
    for (const DTypeCode code : {kFloat, kUInt, kInt}) {
      const DLDataType wide = MakeDType(code, bits);
      if (IsWider(wide, narrow) && Accepts(argument, wide)) return wide;
    }
  }
  return std::nullopt;
}

class Fitting {
 public:
  Fitting(const RewireKernelRow& row, const std::vector<Value*>& inputs, const std::vector<Type>& outputs)
      : row_(row), inputs_(inputs) {
    for (const Value* input : inputs)
      dtypes_.inputs.push_back(input == nullptr ? kFloat32 : input->type.dtype);
    for (const Type& output : outputs) dtypes_.outputs.push_back(output.dtype);
  }

  std::optional<CallDTypes> Fit(const std::vector<Type>& outputs, bool returns) && {
    CallSide(row_, false, inputs_.size()).ForEach([&](const RewireKernelArgument& argument, std::size_t i) {
      FitInput(argument, i);
    });
    if (returns && outputs.size() == 1 && outputs[0].IsTensor()) {
      // The row says nothing about what is returned. Of an input's dtype, it follows the input.
      for (const auto& [narrow, wide] : widened_) {
        if (dtypes_.outputs[0] == narrow) dtypes_.outputs[0] = wide;
      }
    } else if (!returns) {
      CallSide(row_, true, outputs.size()).ForEach([&](const RewireKernelArgument& argument, std::size_t i) {
        if (outputs[i].IsTensor()) FitOutput(argument, i);
      });
    }
    if (!fits_ || !changed_) return std::nullopt;
    return std::move(dtypes_);
  }

 private:
  void FitInput(const RewireKernelArgument& argument, std::size_t i) {
    const Value* value = inputs_[i];
    if (value == nullptr || !value->type.IsTensor() || IsMissing(argument, *value)) return;
    DLDataType& dtype = dtypes_.inputs[i];
    if (!Accepts(argument, dtype)) {
      const std::optional<DLDataType> wide = WiderDType(argument, dtype);
      if (!wide) return Refuse();
      widened_.emplace_back(dtype, *wide);
      groups_.try_emplace(argument.dtype_group, dtype, *wide);
      dtype = *wide;
      changed_ = true;
    }
    if (!HaveOneDType(row_, argument)) return;
    const auto [place, added] = one_dtype_.try_emplace(argument.dtype_group, dtype);
    if (!added && place->second != dtype) Refuse();
  }

  // An output follows the inputs of its group. It also is cast if the kernel cannot write its dtype.
  void FitOutput(const RewireKernelArgument& argument, std::size_t i) {
    DLDataType& dtype = dtypes_.outputs[i];
    const auto group = groups_.find(argument.dtype_group);
    if (argument.dtype_group != 0 && group != groups_.end() && group->second.first == dtype) {
      dtype = group->second.second;
    } else if (!Accepts(argument, dtype)) {
      const std::optional<DLDataType> wide = WiderDType(argument, dtype);
      if (!wide) return Refuse();
      dtype = *wide;
      changed_ = true;
    }
  }

  void Refuse() { fits_ = false; }

  const RewireKernelRow& row_;
  const std::vector<Value*>& inputs_;
  CallDTypes dtypes_;
  std::vector<std::pair<DLDataType, DLDataType>> widened_;   // inputs: from, to
  std::map<int, std::pair<DLDataType, DLDataType>> groups_;  // of those inputs
  std::map<int, DLDataType> one_dtype_;                      // by group
  bool fits_ = true;
  bool changed_ = false;
};

}  // namespace

std::optional<CallDTypes> CastsForCall(const RewireKernelRow& row, const std::vector<Value*>& inputs,
                                       const std::vector<Type>& outputs, bool returns) {
  if (row.arguments == nullptr) return std::nullopt;
  return Fitting(row, inputs, outputs).Fit(outputs, returns);
}

}  // namespace rewire::compiler
