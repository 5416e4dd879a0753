// SPDX-License-Identifier: Apache-2.0
//
// The VM's interface for bound outputs.
#include "rewire/base/array.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/run/vm_impl.h"
#include "rewire/vm/value/shape.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire {

Status CheckOutput(const Module& module, OutputHandle handle) {
  if (handle.function < module.functions.size() &&
      handle.leaf < module.functions[handle.function].output_names.size()) {
    return {};
  }
  return Fail(StatusCode::kInvalidArgument, "the output handle is not one of this Program's");
}

namespace {

Status NotRunYet() {
  return Fail(StatusCode::kInvalidArgument, "this output has not been bound in a successful run yet");
}

}  // namespace

// Why a bound output of the last run was not made in place: the run's own obstacle, else the plan's reason.
std::string OutputReason(const VirtualMachine::Impl& vm, std::uint32_t function, std::uint32_t leaf) {
  const OutputSlot& slot = vm.outputs[function].leaves[leaf];
  const LeafPlan& plan = vm.rep.plans[function].leaves[leaf];
  if (slot.obstacles == OutputSlot::kElsewhere && plan.reason != CopyReason::kNone) {
    return CopyReasonText(plan.reason);
  }
  return ObstaclesText(slot.obstacles);
}

Result<OutputHandle> VirtualMachine::Resolve(const OutputRef& output) const {
  if (impl_ == nullptr) return EmptyVm();
  switch (output.kind_) {
    case OutputRef::kHandle:
      if (Status ok = CheckOutput(impl_->rep.module(), output.handle_); !ok) return Forward(ok);
      return output.handle_;
    case OutputRef::kName:
      return impl_->program.FindOutput(output.name_);
    case OutputRef::kIndex:
      return impl_->program.FindOutput(output.handle_.leaf);
  }
  return Fail(StatusCode::kInternal, "an output reference of no kind");
}

// The fast path of rebinding: other memory with the same form as the bound memory, which was checked against
// the signature. Returns false and changes nothing if the form differs.
inline bool VirtualMachine::Impl::MoveOutput(OutputHandle handle, const TensorView& view) {
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

Status VirtualMachine::TrySetOutput(const OutputRef& output, const TensorView& tensor) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  if (output.kind_ == OutputRef::kHandle && impl_->MoveOutput(output.handle_, tensor)) return {};
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return impl_->SetOutput(*handle, tensor);
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const Tensor& tensor) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  if (Status ok = impl_->SetOutput(*handle, tensor.view()); !ok) return ok;
  OutputSlot& slot = impl_->outputs[handle->function].leaves[handle->leaf];
  slot.owner = Value(tensor);
  slot.storage = TensorOf(slot.owner.any())->storage;
  return {};
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const OutputCapacity& capacity) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return impl_->SetOutput(*handle, capacity);
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const OutputAllocator& allocator) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return impl_->SetOutput(*handle, allocator);
}

Status VirtualMachine::TryDonate(const InputRef& input, const OutputRef& output) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<InputHandle> from = Resolve(input);
  if (!from) return Forward(from);
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return impl_->Donate(*from, *handle);
}

Status VirtualMachine::Impl::ClearOutput(OutputHandle handle) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  ResetSlot(handle, *slot, OutputSlot::kUnbound);
  return {};
}

Status VirtualMachine::TryClearOutput(const OutputRef& output) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return impl_->ClearOutput(*handle);
}

Status VirtualMachine::TryClearOutputs(std::string_view function) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  const auto count = static_cast<std::uint32_t>(impl_->rep.functions[*index].leaf_nodes.size());
  for (std::uint32_t leaf = 0; leaf < count; ++leaf) {
    if (Status ok = impl_->ClearOutput({*index, leaf}); !ok) return ok;
  }
  return {};
}

Status VirtualMachine::TryRequireZeroCopy(bool required) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->require_zero_copy = required;
  return {};
}

// One binding of a call's own.
Status VirtualMachine::BindForCall(std::uint32_t function, const OutputBinding& binding) {
  const OutputRef& ref = binding.output;
  const std::string& name = impl_->FunctionName(function);
  const Result<OutputHandle> handle = ref.kind_ == OutputRef::kHandle ? Result<OutputHandle>(ref.handle_)
                                      : ref.kind_ == OutputRef::kName
                                          ? impl_->program.FindOutput(ref.name_, name)
                                          : impl_->program.FindOutput(ref.handle_.leaf, name);
  if (!handle) return Forward(handle);
  if (handle->function != function) {
    return Fail(StatusCode::kInvalidArgument, "an output of another function than {}", name);
  }
  return impl_->SetOutput(*handle, binding.tensor);
}

Status VirtualMachine::TryInvoke(std::string_view function, Span<const Value> inputs,
                                 Span<const OutputBinding> outputs) {
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  // The call's own bindings stand in for the lasting ones.
  AccountArray<OutputSlots> kept;
  std::swap(kept, impl_->outputs);
  Status status;
  for (const OutputBinding& binding : outputs) {
    if (status) status = BindForCall(*index, binding);
  }
  impl_->detaches_outputs = true;
  if (status) status = impl_->InvokeWith(*index, inputs);
  impl_->detaches_outputs = false;
  if (status) impl_->DetachOutputs(*index);
  std::swap(kept, impl_->outputs);
  return status;
}

// Clears the caller's memory in the tensors that the run has made in it. Other tensors may lie there, too,
// such as an input that the function returns. They do not belong to the run and stay unchanged.
void VirtualMachine::Impl::DetachOutputs(std::uint32_t function) {
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

Result<std::vector<std::int64_t>> VirtualMachine::TryOutputShape(const OutputRef& output) const {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  if (impl_->outputs.empty() || impl_->outputs[handle->function].leaves.empty()) return NotRunYet();
  const OutputSlot& slot = impl_->outputs[handle->function].leaves[handle->leaf];
  if (slot.rank < 0) return NotRunYet();
  return std::vector<std::int64_t>(slot.shape, slot.shape + slot.rank);
}

Result<OutputReport> VirtualMachine::TryOutputReport(const OutputRef& output) const {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  if (impl_->outputs.empty() || impl_->outputs[handle->function].leaves.empty()) return NotRunYet();
  const OutputSlot& slot = impl_->outputs[handle->function].leaves[handle->leaf];
  if (slot.rank < 0) return NotRunYet();
  OutputReport report;
  report.copied = slot.copied;
  if (slot.copied) report.reason = OutputReason(*impl_, handle->function, handle->leaf);
  return report;
}

Result<OutputPlan> Program::TryOutputPlan(OutputHandle output) const {
  const Module& module = rep_->module();
  if (Status ok = CheckOutput(module, output); !ok) return Forward(ok);
  const Function& function = module.functions[output.function];
  const LeafPlan& leaf = rep_->plans[output.function].leaves[output.leaf];
  OutputPlan plan;
  plan.rewired = leaf.rewired;
  if (!leaf.rewired) plan.reason = CopyReasonText(leaf.reason);
  for (const OutputSite& site : leaf.sites) {
    OutputMaker maker;
    maker.pc = site.pc;
    maker.instruction = InstructionText(module, function, site.pc);
    maker.in_place = site.reason == CopyReason::kNone;
    if (!maker.in_place) maker.reason = CopyReasonText(site.reason);
    plan.makers.push_back(std::move(maker));
  }
  return plan;
}

std::string Program::ExplainOutput(OutputHandle output) const {
  const Result<OutputPlan> plan = TryOutputPlan(output);
  if (!plan) return plan.error().message();
  std::string text = plan->rewired ? "rewired" : Format("copied: {}", plan->reason);
  for (const OutputMaker& maker : plan->makers) {
    Append(&text, {"\n  {}@{} ({}): {}", rep_->module().functions[output.function].name, maker.pc,
                   maker.instruction, maker.in_place ? "in place" : maker.reason});
  }
  return text;
}

}  // namespace rewire
