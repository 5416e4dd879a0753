// SPDX-License-Identifier: Apache-2.0
//
// The public class: each call checks that there is a VM and that it is free, and passes on to Machine.
#include "rewire/vm/virtual_machine.h"

#include <utility>

#include "rewire/base/assert.h"
#include "rewire/vm/run/machine.h"
#include "rewire/vm/run/vm_hold.h"

namespace rewire {
namespace {

// Holds the VM and passes the output's handle to `call`.
template <typename Call>
auto WithOutput(Machine* vm, const OutputRef& output, const Call& call,
                VmHold::Purpose purpose = VmHold::kChange) -> decltype(call(OutputHandle())) {
  const VmHold hold(vm, purpose);
  if (!hold) return hold.Refusal();
  const Result<OutputHandle> handle = vm->outputs.Resolve(output);
  if (!handle) return Forward(handle);
  return call(*handle);
}

// Finds an input for calls that are made less often than runs.
[[gnu::noinline]] Status FindInput(Machine* vm, const InputRef& input, InputHandle* handle) {
  if (vm == nullptr) return EmptyVm();
  const Result<InputHandle> found = vm->inputs.Resolve(input);
  if (!found) return Forward(found);
  *handle = *found;
  return {};
}

// Runs a function that is given by its name.
Status RunNamed(Machine* vm, std::string_view function, Status (Machine::*run)(std::uint32_t function)) {
  if (vm == nullptr) return EmptyVm();
  const Result<std::uint32_t> index = vm->program.FindFunction(function);
  if (!index) return Forward(index);
  const VmHold hold(vm, VmHold::kRun);
  if (!hold) return hold.Refusal();
  return (vm->*run)(*index);
}

}  // namespace

VirtualMachine::VirtualMachine(Machine* impl) : impl_(impl) {}
VirtualMachine::VirtualMachine(const Program& program, const Limits& limits)
    : impl_(Machine::Make(program, limits).release()) {}

Result<VirtualMachine> VirtualMachine::TryMake(const Program& program, const VmOptions& options) {
  if (options.memory.pointer == nullptr) {
    return VirtualMachine((options.arena ? Machine::Make(program, options.limits, options.arena)
                                         : Machine::Make(program, options.limits))
                              .release());
  }
  if (options.arena) {
    return Fail(StatusCode::kInvalidArgument,
                "a VM's memory is a StaticMemory or a SharedArena, both were given");
  }
  Result<OwnedMachine> vm = Machine::Make(program, options.limits, options.memory);
  if (!vm) return Forward(vm);
  return VirtualMachine(vm->release());
}

VirtualMachine::~VirtualMachine() = default;

void VirtualMachine::DeleteImpl::operator()(Machine* impl) const { DeleteMachine()(impl); }

VirtualMachine::VirtualMachine(VirtualMachine&&) noexcept = default;
VirtualMachine& VirtualMachine::operator=(VirtualMachine&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

const Program& VirtualMachine::program() const {
  REWIRE_ASSERT(impl_ != nullptr, "program() of a VirtualMachine that was moved from");
  return impl_->program;
}

Status VirtualMachine::TrySetInput(const InputRef& input, const TensorView& tensor, InputMode mode) {
  if (impl_ == nullptr) return EmptyVm();
  const Result<InputHandle> handle = impl_->inputs.Resolve(input);
  if (!handle) return Forward(handle);
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->inputs.Set(*handle, tensor, mode);
}

Status VirtualMachine::TrySetInput(const InputRef& input, const Value& value) {
  InputHandle handle;
  if (Status found = FindInput(impl_.get(), input, &handle); !found) return found;
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->inputs.Set(handle, value);
}

Status VirtualMachine::TrySetInputs(std::string_view function, Span<const TensorView> tensors) {
  if (impl_ == nullptr) return EmptyVm();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  return TrySetInputs(*index, tensors);
}

Status VirtualMachine::TrySetInputs(std::uint32_t function, Span<const TensorView> tensors) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  if (Status ok = impl_->CheckFunction(function); !ok) return ok;
  return impl_->inputs.SetAll(function, tensors);
}

Result<InputReport> VirtualMachine::TryInputReport(const InputRef& input) const {
  InputHandle handle;
  if (Status found = FindInput(impl_.get(), input, &handle); !found) return found;
  return impl_->inputs.Report(handle);
}

Result<Value> VirtualMachine::TryInput(const InputRef& input) const {
  InputHandle handle;
  if (Status found = FindInput(impl_.get(), input, &handle); !found) return found;
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->inputs.ValueOf(handle);
}

Status VirtualMachine::TryClearInputs(std::string_view function) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->inputs.Clear(function);
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const TensorView& tensor) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->outputs.Set(output, tensor);
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const Tensor& tensor) {
  return WithOutput(impl_.get(), output,
                    [&](OutputHandle handle) { return impl_->outputs.Set(handle, tensor); });
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const OutputCapacity& capacity) {
  return WithOutput(impl_.get(), output,
                    [&](OutputHandle handle) { return impl_->outputs.Set(handle, capacity); });
}

Status VirtualMachine::TrySetOutput(const OutputRef& output, const OutputAllocator& allocator) {
  return WithOutput(impl_.get(), output,
                    [&](OutputHandle handle) { return impl_->outputs.Set(handle, allocator); });
}

Status VirtualMachine::TryDonate(const InputRef& input, const OutputRef& output) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  InputHandle from;
  if (Status found = FindInput(impl_.get(), input, &from); !found) return found;
  const Result<OutputHandle> handle = impl_->outputs.Resolve(output);
  if (!handle) return Forward(handle);
  return impl_->outputs.Donate(from, *handle);
}

Status VirtualMachine::TryClearOutput(const OutputRef& output) {
  return WithOutput(impl_.get(), output, [&](OutputHandle handle) { return impl_->outputs.Clear(handle); });
}

Status VirtualMachine::TryClearOutputs(std::string_view function) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->outputs.ClearAll(function);
}

Status VirtualMachine::TryRequireZeroCopy(bool required) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->outputs.require_zero_copy = required;
  return {};
}

Status VirtualMachine::TryInvoke(std::string_view function) {
  return RunNamed(impl_.get(), function, &Machine::Invoke);
}

Result<Value> VirtualMachine::TryInvoke(std::string_view function, Span<const Value> inputs) {
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  return impl_->Invoke(function, inputs);
}

Status VirtualMachine::TryInvoke(std::string_view function, Span<const Value> inputs,
                                 Span<const OutputBinding> outputs) {
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  return impl_->Invoke(function, inputs, outputs);
}

Status VirtualMachine::TryInvokeAsync(std::string_view function) {
  return RunNamed(impl_.get(), function, &Machine::InvokeAsync);
}

Status VirtualMachine::TryWait() {
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  return impl_->Wait();
}

Status VirtualMachine::TrySetStream(DLDevice device, void* stream) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->UseStream(device, stream);
}

Result<void*> VirtualMachine::TryDoneEvent(DLDevice device) {
  const VmHold hold(impl_.get(), VmHold::kLook);
  if (!hold) return hold.Refusal();
  return impl_->DoneEvent(device);
}

Status VirtualMachine::TryWaitForEvent(DLDevice device, void* event) {
  const VmHold hold(impl_.get(), VmHold::kLook);
  if (!hold) return hold.Refusal();
  return impl_->WaitForEvent(device, event);
}

Status VirtualMachine::TryRecord(std::string_view function) {
  if (impl_ == nullptr) return EmptyVm();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  return impl_->recorder.Record(*index);
}

bool VirtualMachine::recorded() const {
  return impl_ != nullptr && (impl_->open_ends & Machine::kRecorded) != 0;
}

Status VirtualMachine::TrySetAutomaticRecording(bool automatic) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->open_ends = static_cast<std::uint8_t>((impl_->open_ends & ~Machine::kAutomatic) |
                                               (automatic ? Machine::kAutomatic : 0));
  return {};
}

const Value& VirtualMachine::result() const {
  static const Value kNone;
  return impl_ != nullptr ? impl_->SharedResult() : kNone;
}

Result<Value> VirtualMachine::TryOutput(std::string_view name) const {
  if (impl_ == nullptr) return EmptyVm();
  const std::string& function = impl_->FunctionName(impl_->result_function);
  const Result<OutputHandle> handle = impl_->program.FindOutput(name, function);
  if (!handle) return Forward(handle);
  return impl_->Output(handle->leaf);
}

Result<Value> VirtualMachine::TryOutput(std::uint32_t leaf) const {
  if (impl_ == nullptr) return EmptyVm();
  return impl_->Output(leaf);
}

Result<std::vector<std::int64_t>> VirtualMachine::TryOutputShape(const OutputRef& output) const {
  return WithOutput(
      impl_.get(), output, [&](OutputHandle handle) { return impl_->outputs.ShapeOf(handle); },
      VmHold::kLook);
}

Result<OutputReport> VirtualMachine::TryOutputReport(const OutputRef& output) const {
  return WithOutput(
      impl_.get(), output, [&](OutputHandle handle) { return impl_->outputs.Report(handle); }, VmHold::kLook);
}

Status VirtualMachine::TrySetLimits(const Limits& limits) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->SetLimits(limits);
  return {};
}

void VirtualMachine::Cancel() {
  if (impl_ != nullptr) impl_->interrupts.Cancel();
}

Status VirtualMachine::TrySetDeadline(std::chrono::steady_clock::time_point deadline) {
  const VmHold hold(impl_.get(), VmHold::kLook);  // a recording stays
  if (!hold) return hold.Refusal();
  impl_->interrupts.SetDeadline(deadline);
  return {};
}

Status VirtualMachine::TrySetObserver(Observer* observer) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->observer = observer;
  return {};
}

std::uint64_t VirtualMachine::bytes_held() const { return impl_ != nullptr ? impl_->memory.bytes_held() : 0; }
std::uint64_t VirtualMachine::bytes_peak() const {
  return impl_ != nullptr ? impl_->memory.account->peak() : 0;
}

WaitCounts VirtualMachine::device_waits() const {
  return impl_ != nullptr ? impl_->work.waits() : WaitCounts();
}

Status VirtualMachine::TryDropResult() {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->DropResult();
  return {};
}

Status VirtualMachine::TryTrim() {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->Trim();
}

}  // namespace rewire
