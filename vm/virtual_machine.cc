// SPDX-License-Identifier: Apache-2.0
#include "vm/virtual_machine.h"

#include <new>

#include "vm/interpreter.h"
#include "vm/shape.h"
#include "vm/type_check.h"
#include "vm/vm_impl.h"

namespace rewire {
namespace {

// One thread at a time: held while a VM runs.
class RunningGuard {
 public:
  explicit RunningGuard(std::atomic<bool>& running)
      : running_(running), ok_(!running.exchange(true, std::memory_order_acquire)) {}
  ~RunningGuard() {
    if (ok_) running_.store(false, std::memory_order_release);
  }
  RunningGuard(const RunningGuard&) = delete;
  RunningGuard& operator=(const RunningGuard&) = delete;
  bool ok() const { return ok_; }

 private:
  std::atomic<bool>& running_;
  bool ok_;
};

tl::unexpected<Error> Busy() {
  return Fail(
      StatusCode::kBusy,
      "this VirtualMachine is running; one thread at a time may use it (make one per thread, they share the "
      "Program)");
}

std::string InputText(const Function& function, std::uint32_t index) {
  return "function " + function.name + ", input " + std::to_string(index) + " (" +
         function.inputs[index].name + ")";
}

tl::unexpected<Error> NoMemoryFor(const MemoryAccount& account, const char* what) {
  if (account.over_limit()) {
    return Fail(StatusCode::kMemoryLimit,
                std::string("no memory for ") + what + " within the VM's byte limit");
  }
  return Fail(StatusCode::kOutOfMemory, std::string("the allocator has no memory for ") + what);
}

}  // namespace

VirtualMachine::Impl::Impl(const Program& linked, MemoryAccount* own_account, const Limits& own_limits)
    : program(linked),
      rep(program.rep()),
      account(own_account),
      heap(own_account, rep.storage_fill),
      limits(own_limits),
      stack(own_account),
      frames(own_account),
      args(own_account),
      temporaries(own_account),
      workspaces(own_account),
      destinations(own_account),
      leaf_values(own_account) {
  account->set_limit(limits.bytes);
}

VirtualMachine::Impl::~Impl() {
  DropKernelState();
  for (GrowingArray<RewireFFIAny>& set : inputs) {
    for (std::uint32_t i = 0; i < set.size(); ++i) heap.Unpin(set[i]);
  }
  ReplaceResult({});
}

void VirtualMachine::Impl::DropKernelState() {
  for (KernelSlot& slot : slots) {
    if (slot.deleter != nullptr) slot.deleter(slot.state);
  }
  slots.clear();
}

RewireFFIAny* VirtualMachine::Impl::InputsOf(std::uint32_t function) {
  if (inputs.empty()) {
    inputs.reserve(rep.functions.size());
    for (std::size_t i = 0; i < rep.functions.size(); ++i) inputs.emplace_back(account);
  }
  GrowingArray<RewireFFIAny>& set = inputs[function];
  const std::uint32_t count = rep.functions[function].input_count;
  if (set.size() < count) {
    if (!set.Resize(count)) return nullptr;
    for (std::uint32_t i = 0; i < count; ++i) set[i] = {};
  }
  return set.data();
}

// Takes over the VM's reference to `value`; the earlier result's goes back to the heap when nobody else holds
// it.
void VirtualMachine::Impl::ReplaceResult(const RewireFFIAny& value) {
  heap.Share(value);
  const RewireFFIAny before = result.Release();
  result = Value::Adopt(value);
  heap.Unpin(before);
}

void VirtualMachine::Impl::EndOfCall() {
  heap.EndOfCall();
  stack.Shrink();
  frames.Shrink();
  args.Shrink();
  temporaries.Shrink();
}

VirtualMachine::VirtualMachine(const Program& program, const Limits& limits)
    : impl_(new Impl(Program(program.rep_, nullptr), MemoryAccount::Make(program.rep().allocator), limits)) {}

VirtualMachine::~VirtualMachine() {
  if (impl_ == nullptr) return;
  MemoryAccount* account = impl_->account;
  impl_.reset();
  account->Unref();
}

VirtualMachine::VirtualMachine(VirtualMachine&&) noexcept = default;
VirtualMachine& VirtualMachine::operator=(VirtualMachine&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

const Program& VirtualMachine::program() const { return impl_->program; }

Result<InputHandle> VirtualMachine::Resolve(const InputRef& input) const {
  switch (input.kind_) {
    case InputRef::kHandle: {
      const Module& module = impl_->rep.module();
      const InputHandle handle = input.handle_;
      if (handle.function < module.functions.size() &&
          handle.index < module.functions[handle.function].inputs.size()) {
        return handle;
      }
      return Fail(StatusCode::kInvalidArgument, "the input handle is not one of this Program's");
    }
    case InputRef::kName:
      return impl_->program.FindInput(input.name_);
    case InputRef::kIndex:
      return impl_->program.FindInput(input.handle_.index);
  }
  return Fail(StatusCode::kInternal, "an input reference of no kind");
}

Status VirtualMachine::TrySetInput(const InputRef& input, const TensorView& tensor, InputMode mode) {
  const Result<InputHandle> handle = Resolve(input);
  if (!handle) return Forward(handle);
  if (impl_->running.load(std::memory_order_relaxed)) return Busy();
  return impl_->SetInput(*handle, tensor, mode);
}

Status VirtualMachine::Impl::SetInput(InputHandle handle, const TensorView& view, InputMode mode) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  const TypeNode& type = function.inputs[handle.index].type.nodes[0];
  const DLTensor& dl = view.dl();
  if (type.kind != TypeKind::kTensor && type.kind != TypeKind::kValue) {
    return Fail(StatusCode::kInvalidArgument,
                InputText(function, handle.index) + ": " +
                    TypeText(function.inputs[handle.index].type, module.symbols) +
                    " expected, a tensor given");
  }
  if (type.kind == TypeKind::kTensor && !TensorFits(module, type, dl)) {
    return Fail(StatusCode::kInvalidArgument,
                InputText(function, handle.index) + ": " + TensorMismatchText(module, type, dl));
  }
  if (dl.ndim > kMaxRank || !IsValidDType(dl.dtype) || !TensorBytes(dl.dtype, view.shape())) {
    return Fail(StatusCode::kInvalidArgument, InputText(function, handle.index) + ": " + TensorText(dl) +
                                                  " has a wrong element type, rank or dimension");
  }
  RewireFFIAny* set = InputsOf(handle.function);
  if (set == nullptr) return NoMemoryFor(*account, "inputs");
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  const std::uint64_t element = ElementBytes({dl.dtype.code, dl.dtype.bits, 1});
  const bool copy = mode == InputMode::kCopy || !view.IsContiguous() || address % element != 0;
  if (copy && dl.device.device_type != kDLCPU) {
    return Fail(StatusCode::kInvalidArgument, InputText(function, handle.index) +
                                                  ": memory of a device must be contiguous and aligned to " +
                                                  std::to_string(element) + " bytes to be borrowed");
  }
  TensorObject* object = nullptr;
  RewireFFIAny& slot = set[handle.index];
  if (copy) {
    object = NewHeapTensor(heap, rep.devices[kHostDevice], dl.dtype, view.shape());
    if (object == nullptr) return NoMemoryFor(*account, "a copied input");
    CopyElements(dl, object->tensor.data);
    object->flags |= TensorObject::kReadOnly;
  } else {
    // The object of the last borrowed tensor serves again when nobody else refers to it.
    object = slot.type_index == kTensorKind ? TensorOf(slot) : nullptr;
    const bool reusable = object != nullptr && object->local == 1 && object->strong() == 1 &&
                          object->storage == nullptr &&
                          object->capacity >= static_cast<std::uint32_t>(dl.ndim);
    if (!reusable) {
      object = heap.NewTensor(static_cast<std::uint32_t>(dl.ndim));
      if (object == nullptr) return NoMemoryFor(*account, "inputs");
      object->storage = nullptr;
    }
    object->flags = TensorObject::kReadOnly;
    SetContiguousDims(object, dl.shape, static_cast<std::uint32_t>(dl.ndim));
    object->tensor.data = view.data();
    object->tensor.byte_offset = 0;
    object->tensor.device = dl.device;
    object->tensor.dtype = dl.dtype;
    if (reusable) return {};
  }
  heap.Unpin(slot);
  slot = MakeAny(kTensorKind, object);
  return {};
}

Status VirtualMachine::TrySetInput(const InputRef& input, const Value& value) {
  const Result<InputHandle> handle = Resolve(input);
  if (!handle) return Forward(handle);
  if (impl_->running.load(std::memory_order_relaxed)) return Busy();
  return impl_->SetInput(*handle, value);
}

Status VirtualMachine::Impl::SetInput(InputHandle handle, const Value& value) {
  RewireFFIAny* set = InputsOf(handle.function);
  if (set == nullptr) return NoMemoryFor(*account, "inputs");
  RewireFFIAny taken{};
  if (Status ok = TakeInput(handle, value, &taken); !ok) return ok;
  heap.Unpin(set[handle.index]);
  set[handle.index] = taken;
  return {};
}

// Checks a value against an input's type and takes a reference to what the program will see: the value
// itself, or a copy of a strided tensor. Shared tensors are read-only to programs.
Status VirtualMachine::Impl::TakeInput(InputHandle handle, const Value& value, RewireFFIAny* taken) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  if (Status ok = CheckValue(module, function.inputs[handle.index].type, value.any()); !ok) {
    return Forward(ok, InputText(function, handle.index));
  }
  *taken = value.any();
  if (value.kind() == ValueKind::kTensor && !IsContiguous(TensorOf(value.any())->tensor)) {
    const DLTensor& dl = TensorOf(value.any())->tensor;
    if (dl.device.device_type != kDLCPU) {
      return Fail(StatusCode::kInvalidArgument,
                  InputText(function, handle.index) + ": a tensor on a device must be contiguous");
    }
    TensorObject* copy = NewHeapTensor(heap, rep.devices[kHostDevice], dl.dtype,
                                       {dl.shape, static_cast<std::size_t>(dl.ndim)});
    if (copy == nullptr) return NoMemoryFor(*account, "a copied input");
    CopyElements(dl, copy->tensor.data);
    copy->flags |= TensorObject::kReadOnly;
    *taken = MakeAny(kTensorKind, copy);
    return {};
  }
  ObjectHeap::Pin(*taken);
  return {};
}

Status VirtualMachine::TrySetInputs(std::string_view function, Span<const TensorView> tensors) {
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  return TrySetInputs(*index, tensors);
}

Status VirtualMachine::TrySetInputs(std::uint32_t function, Span<const TensorView> tensors) {
  if (impl_->running.load(std::memory_order_relaxed)) return Busy();
  if (function >= impl_->rep.functions.size()) {
    return Fail(StatusCode::kInvalidArgument, "there is no function " + std::to_string(function));
  }
  const Function& target = impl_->rep.module().functions[function];
  if (tensors.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function " + target.name + " takes " +
                                                  std::to_string(target.inputs.size()) + " inputs, " +
                                                  std::to_string(tensors.size()) + " given");
  }
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (Status ok = impl_->SetInput({function, i}, tensors[i], InputMode::kBorrow); !ok) return ok;
  }
  return {};
}

Status VirtualMachine::TryClearInputs(std::string_view function) {
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  if (impl_->running.load(std::memory_order_relaxed)) return Busy();
  if (impl_->inputs.empty()) return {};
  GrowingArray<RewireFFIAny>& set = impl_->inputs[*index];
  for (std::uint32_t i = 0; i < set.size(); ++i) impl_->heap.Unpin(set[i]);
  set.Release();
  return {};
}

Status VirtualMachine::TryInvoke(std::string_view function) {
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  return TryInvoke(*index);
}

Status VirtualMachine::TryInvoke(std::uint32_t function) {
  const RunningGuard guard(impl_->running);
  if (!guard.ok()) return Busy();
  if (function >= impl_->rep.functions.size()) {
    return Fail(StatusCode::kInvalidArgument, "there is no function " + std::to_string(function));
  }
  const RewireFFIAny* inputs = impl_->InputsOf(function);
  const std::uint32_t count = impl_->rep.functions[function].input_count;
  if (inputs == nullptr && count > 0) return NoMemoryFor(*impl_->account, "inputs");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (__builtin_expect(inputs[i].type_index == kRewireFFINone, 0)) {
      return Fail(StatusCode::kInvalidArgument, InputText(impl_->rep.module().functions[function], i) +
                                                    " is not set; set it before invoking");
    }
  }
  return impl_->Run(function, inputs);
}

Status VirtualMachine::Impl::Run(std::uint32_t function, const RewireFFIAny* run_inputs) {
  RewireFFIAny value{};
  if (!args.Resize(rep.max_args)) return NoMemoryFor(*account, "kernel arguments");
  const bool bound = !outputs.empty() && outputs[function].bound > 0;
  if (bound) {
    if (Status ok = PrepareOutputs(function, run_inputs); !ok) return ok;
  }
  Status status = Interpreter(*this).Run(function, run_inputs, bound, &value);
  ReplaceResult(value);
  result_function = function;
  EndOfCall();
  return status;
}

Result<Value> VirtualMachine::TryInvoke(std::string_view function, Span<const Value> inputs) {
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  const RunningGuard guard(impl_->running);
  if (!guard.ok()) return Busy();
  const Function& target = impl_->rep.module().functions[*index];
  if (inputs.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function " + target.name + " takes " +
                                                  std::to_string(target.inputs.size()) + " inputs, " +
                                                  std::to_string(inputs.size()) + " given");
  }
  std::vector<RewireFFIAny> taken(inputs.size());
  Status status;
  for (std::uint32_t i = 0; status && i < inputs.size(); ++i) {
    status = impl_->TakeInput({*index, i}, inputs[i], &taken[i]);
  }
  if (status) status = impl_->Run(*index, taken.data());
  for (const RewireFFIAny& value : taken) impl_->heap.Unpin(value);
  if (!status) return Forward(status);
  return impl_->result;
}

const Value& VirtualMachine::result() const { return impl_->result; }

Result<Value> VirtualMachine::TryOutput(std::string_view name) const {
  const Function& function = impl_->rep.module().functions[impl_->result_function];
  const Result<OutputHandle> handle = impl_->program.FindOutput(name, function.name);
  if (!handle) return Forward(handle);
  return TryOutput(handle->leaf);
}

Result<Value> VirtualMachine::TryOutput(std::uint32_t leaf) const {
  if (impl_->result.kind() == ValueKind::kNone) {
    return Fail(StatusCode::kInvalidArgument, "there is no result yet; invoke first");
  }
  const Function& function = impl_->rep.module().functions[impl_->result_function];
  const Type& type = function.result;
  if (leaf == 0 && type.nodes.size() == 1) return impl_->result;
  const std::vector<std::uint32_t> leaves = Leaves(type);
  if (leaf >= leaves.size()) {
    return Fail(StatusCode::kNotFound, "function " + function.name + " has " + std::to_string(leaves.size()) +
                                           " outputs, number " + std::to_string(leaf) + " asked for");
  }
  // Walks down from the root to the leaf's node.
  Value value = impl_->result;
  std::uint32_t node = 0;
  while (node != leaves[leaf]) {
    std::uint32_t child = node + 1;
    std::uint32_t field = 0;
    for (; SubtreeEnd(type, child) <= leaves[leaf]; child = SubtreeEnd(type, child)) ++field;
    value = value.field(field);
    node = child;
  }
  return value;
}

void VirtualMachine::SetLimits(const Limits& limits) {
  impl_->limits = limits;
  impl_->account->set_limit(limits.bytes);
}

void VirtualMachine::Cancel() {
  impl_->interrupts.fetch_or(Impl::kCancelRequested, std::memory_order_relaxed);
}

void VirtualMachine::SetDeadline(std::chrono::steady_clock::time_point deadline) {
  impl_->deadline = deadline;
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    impl_->interrupts.fetch_and(~Impl::kHasDeadline, std::memory_order_relaxed);
  } else {
    impl_->interrupts.fetch_or(Impl::kHasDeadline, std::memory_order_relaxed);
  }
}

void VirtualMachine::SetObserver(Observer* observer) { impl_->observer = observer; }

std::uint64_t VirtualMachine::bytes_held() const { return impl_->account->used(); }
std::uint64_t VirtualMachine::bytes_peak() const { return impl_->account->peak(); }

void VirtualMachine::Trim() {
  impl_->ReplaceResult({});
  impl_->DropKernelState();
  impl_->stack.Release();
  impl_->frames.Release();
  impl_->args.Release();
  impl_->temporaries.Release();
  impl_->workspaces.Release();
  impl_->heap.Trim();
}

}  // namespace rewire
