// SPDX-License-Identifier: Apache-2.0
//
// A VM's outputs: which one a host means, binding them, and what became of them. The checks of each kind of
// memory are in output_binding.cc.
#include <string>
#include <vector>

#include "rewire/vm/run/vm_impl.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

Status NotRunYet() {
  return Fail(StatusCode::kInvalidArgument, "this output has not been bound in a successful run yet");
}

}  // namespace

// Why a bound output of the last run was not made in place: the run's own obstacle, else the plan's reason.
std::string OutputReason(const VmImpl& vm, std::uint32_t function, std::uint32_t leaf) {
  const OutputSlot& slot = vm.outputs[function].leaves[leaf];
  const LeafPlan& plan = vm.rep.plans[function].leaves[leaf];
  if (slot.obstacles == OutputSlot::kElsewhere && plan.reason != CopyReason::kNone) {
    return CopyReasonText(plan.reason);
  }
  return ObstaclesText(slot.obstacles);
}

Result<OutputHandle> VmImpl::Resolve(const OutputRef& output) const {
  switch (output.kind_) {
    case OutputRef::kHandle:
      if (Status ok = CheckOutput(rep.module(), output.handle_); !ok) return Forward(ok);
      return output.handle_;
    case OutputRef::kName:
      return program.FindOutput(output.name_);
    case OutputRef::kIndex:
      return program.FindOutput(output.handle_.leaf);
  }
  return Fail(StatusCode::kInternal, "an output reference of no kind");
}

// The fast path of rebinding: other memory with the same form as the bound memory, which was checked against
// the signature. Returns false and changes nothing if the form differs.
bool VmImpl::MoveOutput(OutputHandle handle, const TensorView& view) {
  if (handle.function >= outputs.size() || handle.leaf >= outputs[handle.function].leaves.size())
    return false;
  OutputSlot& slot = outputs[handle.function].leaves[handle.leaf];
  if (slot.mode != OutputSlot::kTensor || slot.owner.any().type_index != kRewireFFINone || view.read_only() ||
      slot.strided || view.data() == nullptr || !SameForm(slot.form, view.dl())) {
    return false;
  }
  MemoryRange range;
  if (!FindRange(view.data(), slot.capacity, &range)) return false;
  slot.MoveTo(view.data());
  return true;
}

Status VmImpl::BindOutput(const OutputRef& output, const TensorView& tensor) {
  const bool on_host = IsHostDevice(tensor.device());
  if (on_host && output.kind_ == OutputRef::kHandle && MoveOutput(output.handle_, tensor)) return {};
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return SetOutput(*handle, tensor);
}

Status VmImpl::SetOutput(OutputHandle handle, const Tensor& given) {
  const Result<Tensor> imported = Imported(given.dl());
  if (!imported) return Forward(imported);
  const Tensor& tensor = *imported ? *imported : given;
  if (Status ok = SetOutput(handle, tensor.view()); !ok) return ok;
  OutputSlot& slot = outputs[handle.function].leaves[handle.leaf];
  slot.owner = Value(tensor);
  slot.storage = TensorOf(slot.owner.any())->storage;
  return {};
}

Status VmImpl::ClearOutput(OutputHandle handle) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  ResetSlot(handle, *slot, OutputSlot::kUnbound);
  return {};
}

Status VmImpl::ClearOutputs(std::string_view function) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  const auto count = static_cast<std::uint32_t>(rep.functions[*index].leaf_nodes.size());
  for (std::uint32_t leaf = 0; leaf < count; ++leaf) {
    if (Status ok = ClearOutput({*index, leaf}); !ok) return ok;
  }
  return {};
}

// One binding of a call's own.
Status VmImpl::BindForCall(std::uint32_t function, const OutputBinding& binding) {
  const OutputRef& ref = binding.output;
  const std::string& name = FunctionName(function);
  const Result<OutputHandle> handle = ref.kind_ == OutputRef::kHandle ? Result<OutputHandle>(ref.handle_)
                                      : ref.kind_ == OutputRef::kName
                                          ? program.FindOutput(ref.name_, name)
                                          : program.FindOutput(ref.handle_.leaf, name);
  if (!handle) return Forward(handle);
  if (handle->function != function) {
    return Fail(StatusCode::kInvalidArgument, "an output of another function than {}", name);
  }
  return SetOutput(*handle, binding.tensor);
}

// Clears the caller's memory in the tensors that the run has made in it. Other tensors may lie there, too,
// such as an input that the function returns. They do not belong to the run and stay unchanged.
void VmImpl::DetachOutputs(std::uint32_t function) {
  if (outputs.empty()) return;
  const OutputSlots& slots = outputs[function];
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

// The slot of an output that was bound in the last successful run; null if there is none.
const OutputSlot* VmImpl::LastSlot(OutputHandle handle) const {
  if (outputs.empty() || outputs[handle.function].leaves.empty()) return nullptr;
  const OutputSlot& slot = outputs[handle.function].leaves[handle.leaf];
  return slot.rank < 0 ? nullptr : &slot;
}

Result<std::vector<std::int64_t>> VmImpl::OutputShape(OutputHandle handle) const {
  const OutputSlot* slot = LastSlot(handle);
  if (slot == nullptr) return NotRunYet();
  return std::vector<std::int64_t>(slot->shape, slot->shape + slot->rank);
}

Result<OutputReport> VmImpl::ReportOutput(OutputHandle handle) const {
  const OutputSlot* slot = LastSlot(handle);
  if (slot == nullptr) return NotRunYet();
  OutputReport report;
  report.copied = slot->copied || slot->staged;
  if (slot->copied) {
    report.reason = OutputReason(*this, handle.function, handle.leaf);
  } else if (slot->staged) {
    report.reason = "the run goes on after the call, and the bound memory is not pinned";
  }
  return report;
}

}  // namespace rewire
