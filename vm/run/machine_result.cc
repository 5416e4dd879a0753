// SPDX-License-Identifier: Apache-2.0
//
// The result of a machine's last run: kept, shared, looked into.
#include <utility>

#include "rewire/vm/run/machine.h"

namespace rewire {

void Machine::DropResult() {
  heap.Unpin(shared_result.Release());
  heap.Release(std::exchange(own_result, {}));
}

void Machine::ShareResult() {
  if (own_result.type_index == kRewireFFINone) return;
  heap.Share(own_result);
  shared_result = Value::Adopt(std::exchange(own_result, {}));
}

const Value& Machine::SharedResult() {
  result_wanted = true;
  ShareResult();
  return shared_result;
}

RewireFFIAny Machine::ResultNode(std::uint32_t target) const {
  const Type& type = rep.module().functions[result_function].result;
  const bool own = own_result.type_index != kRewireFFINone;
  RewireFFIAny value = own ? own_result : shared_result.any();
  std::uint32_t node = 0;
  while (node != target) {
    std::uint32_t child = node + 1;
    std::uint32_t field = 0;
    for (; SubtreeEnd(type, child) <= target; child = SubtreeEnd(type, child)) ++field;
    if (value.type_index != kAdtKind || field >= TupleOf(value)->count) return {};
    value = TupleOf(value)->fields()[field];
    node = child;
  }
  return value;
}

Result<Value> Machine::Output(std::uint32_t leaf) {
  if (SharedResult().kind() == ValueKind::kNone) {
    return Fail(StatusCode::kInvalidArgument, "there is no result yet; invoke first");
  }
  const Array<std::uint32_t>& leaves = rep.functions[result_function].leaf_nodes;
  if (leaf >= leaves.size()) {
    return Fail(StatusCode::kNotFound, "function {} has {} outputs, number {} asked for",
                FunctionName(result_function), leaves.size(), leaf);
  }
  const RewireFFIAny value = ResultNode(leaves[leaf]);
  if (IsObjectKind(value.type_index)) ObjectOf(value)->AddStrong();  // a result is shared
  return Value::Adopt(value);
}

// Clears the caller's memory in the tensors that the run has made in it. Other tensors may lie there, too,
// such as an input that the function returns. They do not belong to the run and stay unchanged.
void Machine::DetachOutputs(std::uint32_t function) {
  if (outputs.empty()) return;
  const OutputSlots& slots = outputs.Of(function);
  for (std::uint32_t leaf = 0; leaf < slots.leaves.size(); ++leaf) {
    if (slots.leaves[leaf].mode == OutputSlot::kUnbound) continue;
    const RewireFFIAny value = ResultNode(rep.functions[function].leaf_nodes[leaf]);
    if (value.type_index != kTensorKind) continue;
    TensorObject* tensor = TensorOf(value);
    if ((tensor->flags & TensorObject::kForCall) == 0) continue;
    tensor->flags &= ~std::uint32_t{TensorObject::kForCall};
    tensor->tensor.data = nullptr;
  }
}

}  // namespace rewire
