// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/virtual_machine.h"

#include <new>

#include "rewire/base/assert.h"
#include "rewire/vm/run/vm_impl.h"
#include "rewire/vm/value/shape.h"
#include "rewire/vm/value/type_check.h"

namespace rewire {
Status EmptyVm() {
  return Fail(StatusCode::kInvalidArgument, "this VirtualMachine is empty: it was moved from");
}

Status VmHold::Refusal() const {
  if (empty_) return EmptyVm();
  return Fail(
      StatusCode::kBusy,
      "this VirtualMachine is running; one thread at a time may use it (make one per thread, they share the "
      "Program)");
}

VirtualMachine::VirtualMachine(const Program& program, const Limits& limits) {
  MemoryAccount* account = MemoryAccount::Make(program.rep().allocator);
  account->Ref();
  impl_.reset(new Impl(Program(program.rep_, nullptr), account, account, limits));
}

Result<VirtualMachine> VirtualMachine::TryMake(const Program& program, const VmOptions& options) {
  const Program linked(program.rep_, nullptr);
  const StaticMemory& memory = options.memory;
  VirtualMachine vm;
  if (memory.pointer == nullptr) {
    MemoryAccount* home = MemoryAccount::Make(program.rep().allocator);
    MemoryAccount* account = home;
    if (options.arena) {
      account = options.arena.rep()->NewAccount();
    } else {
      home->Ref();
    }
    vm.impl_.reset(new Impl(linked, account, home, options.limits));
    vm.impl_->arena = options.arena;
    if (options.arena) vm.impl_->block = options.arena.rep()->block;
    return vm;
  }
  if (options.arena) {
    return Fail(StatusCode::kInvalidArgument,
                "a VM's memory is a StaticMemory or a SharedArena, both were given");
  }
  FixedBlock* block = FixedBlock::Make(memory.pointer, memory.size);
  const Allocator allocator = block != nullptr ? block->allocator() : Allocator();
  MemoryAccount* account = block != nullptr ? MemoryAccount::MakeWithin(allocator) : nullptr;
  void* place = account != nullptr ? allocator.allocate(block, sizeof(Impl), 64) : nullptr;
  if (place == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "the static memory of {} bytes is too small for a VM", memory.size);
  }
  account->Ref();
  vm.impl_.reset(new (place) Impl(linked, account, account, options.limits));
  vm.impl_->block = block;
  return vm;
}

VirtualMachine::VirtualMachine() = default;
VirtualMachine::~VirtualMachine() = default;

void VirtualMachine::DeleteImpl::operator()(Impl* impl) const {
  MemoryAccount* account = impl->account;
  MemoryAccount* home = impl->home;
  if (impl->bounded() && !impl->arena) {
    const Allocator allocator = account->allocator();
    impl->~Impl();
    allocator.deallocate(allocator.context, impl, sizeof(Impl), 64);
  } else {
    delete impl;
  }
  account->Unref();
  home->Unref();
}

VirtualMachine::VirtualMachine(VirtualMachine&&) noexcept = default;
VirtualMachine& VirtualMachine::operator=(VirtualMachine&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

const Program& VirtualMachine::program() const {
  REWIRE_ASSERT(impl_ != nullptr, "program() of a VirtualMachine that was moved from");
  return impl_->program;
}

Result<InputHandle> VirtualMachine::Resolve(const InputRef& input) const {
  if (impl_ == nullptr) return EmptyVm();
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
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  if (mode == InputMode::kBorrow && impl_->MoveInput(*handle, tensor)) return {};
  return impl_->SetInput(*handle, tensor, mode);
}

// The fast path of rebinding: other memory with the same form as the current one, which was checked against
// the signature. Returns false and changes nothing if the form differs.
bool VirtualMachine::Impl::MoveInput(InputHandle handle, const TensorView& view) {
  if (inputs.empty()) return false;
  const RewireFFIAny& slot = inputs[rep.functions[handle.function].first_input + handle.index];
  if (slot.type_index != kTensorKind) return false;
  TensorObject* object = TensorOf(slot);
  if (!MayDescribeAnother(*object) || !SameForm(object->tensor, view.dl())) return false;
  const std::uint64_t element = ElementBytes({view.dtype().code, view.dtype().bits, 1});
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  if ((element & (element - 1)) != 0 || (address & (element - 1)) != 0 || address == 0) return false;
  object->flags = (object->flags & ~std::uint32_t{TensorObject::kImmutable}) |
                  (view.read_only() ? TensorObject::kImmutable : 0u);
  object->tensor.data = view.data();
  return true;
}

// The object of a borrowed tensor is reused for the next tensor if nobody else refers to it.
bool VirtualMachine::Impl::MayDescribeAnother(const TensorObject& object) const {
  return (object.local == 1 || object.account == home) && object.strong() == 1 && object.storage == nullptr;
}

Status VirtualMachine::Impl::SetInput(InputHandle handle, const TensorView& view, InputMode mode) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  const TypeNode& type = function.inputs[handle.index].type.nodes[0];
  const DLTensor& dl = view.dl();
  if (type.kind != TypeKind::kTensor && type.kind != TypeKind::kValue) {
    return Fail(StatusCode::kInvalidArgument, "{}: {} expected, a tensor given",
                InputText(function, handle.index),
                TypeText(function.inputs[handle.index].type, module.symbols));
  }
  if (dl.ndim > kMaxRank || !IsValidDType(dl.dtype) || !TensorBytes(dl.dtype, view.shape())) {
    return Fail(StatusCode::kInvalidArgument, "{}: {} has a wrong element type, rank or dimension",
                InputText(function, handle.index), TensorText(dl));
  }
  if (Status ok = CheckMemory(dl); !ok) return Forward(ok, InputText(function, handle.index));
  RewireFFIAny* set = InputsOf(handle.function);
  if (set == nullptr) return NoMemory("inputs");
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  const std::uint64_t element = ElementBytes({dl.dtype.code, dl.dtype.bits, 1});
  TensorObject* object = nullptr;
  RewireFFIAny& slot = set[handle.index];
  const bool as_it_lies = mode == InputMode::kBorrow && view.IsContiguous() && address % element == 0 &&
                          (type.kind != TypeKind::kTensor || TensorFits(module, type, dl));
  if (__builtin_expect(!as_it_lies, 0)) {
    const Result<TensorObject*> copy = CopyIfNeeded(handle, dl, mode);
    if (!copy) return Forward(copy);
    object = *copy;
  } else {
    object = slot.type_index == kTensorKind ? TensorOf(slot) : nullptr;
    const bool reusable = object != nullptr && MayDescribeAnother(*object) &&
                          object->capacity >= static_cast<std::uint32_t>(dl.ndim);
    if (!reusable) {
      // Not in an arena: it stays between runs.
      object = account == home ? heap.NewTensor(static_cast<std::uint32_t>(dl.ndim))
                               : NewSharedTensor(static_cast<std::uint32_t>(dl.ndim), home);
      if (object == nullptr) return NoMemory("inputs");
      object->storage = nullptr;
    }
    object->flags = TensorObject::kReadOnly | (view.read_only() ? TensorObject::kImmutable : 0u);
    SetContiguousDims(object, dl.dtype, dl.shape, static_cast<std::uint32_t>(dl.ndim));
    object->tensor.data = view.data();
    object->tensor.byte_offset = 0;
    object->tensor.device = dl.device;
    if (reusable) return {};
  }
  heap.Unpin(std::exchange(slot, MakeAny(kTensorKind, object)));
  return {};
}

Status VirtualMachine::TrySetInput(const InputRef& input, const Value& value) {
  const Result<InputHandle> handle = Resolve(input);
  if (!handle) return Forward(handle);
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  return impl_->SetInput(*handle, value);
}

Status VirtualMachine::Impl::SetInput(InputHandle handle, const Value& value) {
  RewireFFIAny* set = InputsOf(handle.function);
  if (set == nullptr) return NoMemory("inputs");
  RewireFFIAny taken{};
  if (Status ok = TakeInput(handle, value, &taken); !ok) return ok;
  heap.Unpin(std::exchange(set[handle.index], taken));
  return {};
}

// Checks a value against an input's type and takes a reference to what the program will see. That is the
// value itself, or a copy if the value cannot be used in place. Shared tensors are read-only to programs.
Status VirtualMachine::Impl::TakeInput(InputHandle handle, const Value& value, RewireFFIAny* taken) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  if (value.kind() == ValueKind::kTensor) {
    if (Status ok = CheckMemory(TensorOf(value.any())->tensor); !ok) {
      return Forward(ok, InputText(function, handle.index));
    }
    const Result<TensorObject*> copy =
        CopyIfNeeded(handle, TensorOf(value.any())->tensor, InputMode::kBorrow);
    if (!copy) return Forward(copy);
    if (*copy != nullptr) {
      *taken = MakeAny(kTensorKind, *copy);
      return {};
    }
  }
  const Type& type = function.inputs[handle.index].type;
  RewireFFIAny single;
  AccountArray<RewireFFIAny> nodes;  // of a tree
  const bool tree = type.nodes.size() > 1;
  if (tree && !nodes.Make(home, static_cast<std::uint32_t>(type.nodes.size()))) return NoMemory("inputs");
  if (Status ok = CheckValue(module, type, value.any(), tree ? nodes.data() : &single); !ok) {
    return Forward(ok, InputText(function, handle.index));
  }
  *taken = value.any();
  ObjectHeap::Pin(*taken);
  return {};
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
  if (function >= impl_->rep.functions.size()) {
    return Fail(StatusCode::kInvalidArgument, "there is no function {}", function);
  }
  const Function& target = impl_->rep.module().functions[function];
  if (tensors.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", target.name,
                target.inputs.size(), tensors.size());
  }
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (impl_->MoveInput({function, i}, tensors[i])) continue;
    if (Status ok = impl_->SetInput({function, i}, tensors[i], InputMode::kBorrow); !ok) return ok;
  }
  return {};
}

Status VirtualMachine::TryClearInputs(std::string_view function) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  if (impl_->inputs.empty()) return {};
  RewireFFIAny* set = impl_->InputsOf(*index);
  for (std::uint32_t i = 0; i < impl_->rep.functions[*index].input_count; ++i) {
    impl_->heap.Unpin(std::exchange(set[i], RewireFFIAny{}));
  }
  return {};
}

Status VirtualMachine::TryInvoke(std::string_view function) {
  if (impl_ == nullptr) return EmptyVm();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  return TryInvoke(*index);
}

Status VirtualMachine::TryInvoke(std::uint32_t function) {
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  if (function >= impl_->rep.functions.size()) {
    return Fail(StatusCode::kInvalidArgument, "there is no function {}", function);
  }
  const RewireFFIAny* inputs = impl_->InputsOf(function);
  const std::uint32_t count = impl_->rep.functions[function].input_count;
  if (inputs == nullptr && count > 0) return impl_->NoMemory("inputs");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (__builtin_expect(inputs[i].type_index == kRewireFFINone, 0)) {
      return Fail(StatusCode::kInvalidArgument, "{} is not set; set it before invoking",
                  InputText(impl_->rep.module().functions[function], i));
    }
  }
  return impl_->Run(function, inputs);
}

Result<Value> VirtualMachine::TryInvoke(std::string_view function, Span<const Value> inputs) {
  const VmHold hold(impl_.get(), VmHold::kRun);
  if (!hold) return hold.Refusal();
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  if (Status ok = impl_->InvokeWith(*index, inputs); !ok) return Forward(ok);
  return impl_->result;
}

// A run over these inputs, for this call alone.
Status VirtualMachine::Impl::InvokeWith(std::uint32_t function, Span<const Value> values) {
  const Function& target = rep.module().functions[function];
  if (values.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", target.name,
                target.inputs.size(), values.size());
  }
  // In the VM's own memory where there are many.
  constexpr std::size_t kFew = 16;
  RewireFFIAny few[kFew];
  AccountArray<RewireFFIAny> many;
  if (values.size() > kFew && !many.Make(home, static_cast<std::uint32_t>(values.size()))) {
    return NoMemory("inputs");
  }
  RewireFFIAny* taken = values.size() > kFew ? many.data() : few;
  Status status;
  std::uint32_t count = 0;
  for (; status && count < values.size(); ++count) {
    taken[count] = {};
    status = TakeInput({function, count}, values[count], &taken[count]);
  }
  if (status) status = Run(function, taken);
  for (std::uint32_t i = 0; i < count; ++i) heap.Unpin(taken[i]);
  return status;
}

const Value& VirtualMachine::result() const {
  static const Value kNone;
  return impl_ != nullptr ? impl_->result : kNone;
}

Result<Value> VirtualMachine::TryOutput(std::string_view name) const {
  if (impl_ == nullptr) return EmptyVm();
  const Function& function = impl_->rep.module().functions[impl_->result_function];
  const Result<OutputHandle> handle = impl_->program.FindOutput(name, function.name);
  if (!handle) return Forward(handle);
  return TryOutput(handle->leaf);
}

Result<Value> VirtualMachine::TryOutput(std::uint32_t leaf) const {
  if (impl_ == nullptr) return EmptyVm();
  if (impl_->result.kind() == ValueKind::kNone) {
    return Fail(StatusCode::kInvalidArgument, "there is no result yet; invoke first");
  }
  const Function& function = impl_->rep.module().functions[impl_->result_function];
  const Array<std::uint32_t>& leaves = impl_->rep.functions[impl_->result_function].leaf_nodes;
  if (leaf >= leaves.size()) {
    return Fail(StatusCode::kNotFound, "function {} has {} outputs, number {} asked for", function.name,
                leaves.size(), leaf);
  }
  const RewireFFIAny value = impl_->ResultNode(leaves[leaf]);
  if (IsObjectKind(value.type_index)) ObjectOf(value)->AddStrong();  // a result is shared
  return Value::Adopt(value);
}

Status VirtualMachine::TrySetLimits(const Limits& limits) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->limits = limits;
  impl_->account->set_limit(limits.bytes);
  impl_->home->set_limit(limits.bytes);
  // The spare blocks for the next run were taken under the earlier limit.
  if (bytes_held() > limits.bytes) impl_->FreeSpareMemory();
  return {};
}

void VirtualMachine::Cancel() {
  if (impl_ == nullptr) return;
  const std::uint64_t run = impl_->current_run.load(std::memory_order_acquire);
  if (run == 0) return;
  impl_->cancelled_run.store(run, std::memory_order_relaxed);
  impl_->interrupts.fetch_or(Impl::kCancelRequested, std::memory_order_release);
}

Status VirtualMachine::TrySetDeadline(std::chrono::steady_clock::time_point deadline) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->deadline = deadline;
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    impl_->interrupts.fetch_and(~Impl::kHasDeadline, std::memory_order_relaxed);
  } else {
    impl_->interrupts.fetch_or(Impl::kHasDeadline, std::memory_order_relaxed);
  }
  return {};
}

Status VirtualMachine::TrySetObserver(Observer* observer) {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->observer = observer;
  return {};
}

std::uint64_t VirtualMachine::bytes_held() const {
  if (impl_ == nullptr) return 0;
  return impl_->account->used() + (impl_->home != impl_->account ? impl_->home->used() : 0);
}
std::uint64_t VirtualMachine::bytes_peak() const { return impl_ == nullptr ? 0 : impl_->account->peak(); }

Status VirtualMachine::TryDropResult() {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->ReplaceResult({});
  return {};
}

Status VirtualMachine::TryTrim() {
  const VmHold hold(impl_.get());
  if (!hold) return hold.Refusal();
  impl_->ReplaceResult({});
  impl_->DropKernelState();
  impl_->GiveBackRunMemory();
  return {};
}

}  // namespace rewire
