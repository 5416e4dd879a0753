// SPDX-License-Identifier: Apache-2.0
#include "vm/virtual_machine.h"

#include <new>

#include "base/array.h"
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

Status Busy() {
  return Fail(
      StatusCode::kBusy,
      "this VirtualMachine is running; one thread at a time may use it (make one per thread, they share the "
      "Program)");
}

}  // namespace

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
  if (mode == InputMode::kBorrow && impl_->MoveInput(*handle, tensor)) return {};
  return impl_->SetInput(*handle, tensor, mode);
}

// The usual rebinding: other memory of the same form as that which is set, and which has been checked against
// the signature. False, and nothing done, when that is not what it is.
bool VirtualMachine::Impl::MoveInput(InputHandle handle, const TensorView& view) {
  if (inputs.empty()) return false;
  const RewireFFIAny& slot = inputs[rep.functions[handle.function].first_input + handle.index];
  if (slot.type_index != kTensorKind) return false;
  TensorObject* object = TensorOf(slot);
  if (!MayDescribeAnother(*object) || !SameForm(object->tensor, view.dl())) return false;
  const std::uint64_t element = ElementBytes({view.dtype().code, view.dtype().bits, 1});
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  if ((element & (element - 1)) != 0 || (address & (element - 1)) != 0) return false;
  object->flags = (object->flags & ~std::uint32_t{TensorObject::kImmutable}) |
                  (view.read_only() ? TensorObject::kImmutable : 0u);
  object->tensor.data = view.data();
  return true;
}

// The object of a borrowed tensor serves for the next one when nobody else refers to it.
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
  if (set == nullptr) return NoMemory("inputs");
  RewireFFIAny taken{};
  if (Status ok = TakeInput(handle, value, &taken); !ok) return ok;
  heap.Unpin(set[handle.index]);
  set[handle.index] = taken;
  return {};
}

// Checks a value against an input's type and takes a reference to what the program will see: the value
// itself, or a copy where it cannot be used as it lies. Shared tensors are read-only to programs.
Status VirtualMachine::Impl::TakeInput(InputHandle handle, const Value& value, RewireFFIAny* taken) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  if (value.kind() == ValueKind::kTensor) {
    const Result<TensorObject*> copy =
        CopyIfNeeded(handle, TensorOf(value.any())->tensor, InputMode::kBorrow);
    if (!copy) return Forward(copy);
    if (*copy != nullptr) {
      *taken = MakeAny(kTensorKind, *copy);
      return {};
    }
  }
  if (Status ok = CheckValue(module, function.inputs[handle.index].type, value.any()); !ok) {
    return Forward(ok, InputText(function, handle.index));
  }
  *taken = value.any();
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
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  if (impl_->running.load(std::memory_order_relaxed)) return Busy();
  if (impl_->inputs.empty()) return {};
  RewireFFIAny* set = impl_->InputsOf(*index);
  for (std::uint32_t i = 0; i < impl_->rep.functions[*index].input_count; ++i) {
    impl_->heap.Unpin(std::exchange(set[i], RewireFFIAny{}));
  }
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
  const Result<std::uint32_t> index = impl_->program.FindFunction(function);
  if (!index) return Forward(index);
  const RunningGuard guard(impl_->running);
  if (!guard.ok()) return Busy();
  const Function& target = impl_->rep.module().functions[*index];
  if (inputs.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", target.name,
                target.inputs.size(), inputs.size());
  }
  Array<RewireFFIAny> taken(inputs.size());
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
  const Array<std::uint32_t>& leaves = impl_->rep.functions[impl_->result_function].leaf_nodes;
  if (leaf >= leaves.size()) {
    return Fail(StatusCode::kNotFound, "function {} has {} outputs, number {} asked for", function.name,
                leaves.size(), leaf);
  }
  const RewireFFIAny value = impl_->ResultNode(leaves[leaf]);
  if (IsObjectKind(value.type_index)) ObjectOf(value)->AddStrong();  // a result is shared
  return Value::Adopt(value);
}

void VirtualMachine::SetLimits(const Limits& limits) {
  impl_->limits = limits;
  impl_->account->set_limit(limits.bytes);
  impl_->home->set_limit(limits.bytes);
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

std::uint64_t VirtualMachine::bytes_held() const {
  return impl_->account->used() + (impl_->home != impl_->account ? impl_->home->used() : 0);
}
std::uint64_t VirtualMachine::bytes_peak() const { return impl_->account->peak(); }

void VirtualMachine::Trim() {
  impl_->ReplaceResult({});
  impl_->DropKernelState();
  impl_->GiveBackRunMemory();
}

}  // namespace rewire
