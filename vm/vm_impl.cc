// SPDX-License-Identifier: Apache-2.0
// A VM's state and its runs.
#include "vm/vm_impl.h"

#include <utility>

#include "vm/interpreter.h"
#include "vm/shape.h"

namespace rewire {
namespace {

// Held while a VM runs in an arena; without one, nothing.
class ArenaGuard {
 public:
  explicit ArenaGuard(const SharedArena& arena)
      : arena_(arena.rep()),
        ok_(arena_ == nullptr || !arena_->in_use.exchange(true, std::memory_order_acquire)) {}
  ~ArenaGuard() {
    if (ok_ && arena_ != nullptr) arena_->in_use.store(false, std::memory_order_release);
  }
  ArenaGuard(const ArenaGuard&) = delete;
  ArenaGuard& operator=(const ArenaGuard&) = delete;
  bool ok() const { return ok_; }

 private:
  SharedArena::Rep* arena_;
  bool ok_;
};

}  // namespace

Status VirtualMachine::Impl::NoMemory(const char* what) const {
  if (account->over_limit() || home->over_limit()) {
    return Fail(StatusCode::kMemoryLimit, "no memory for {} within the VM's byte limit", what);
  }
  return Fail(StatusCode::kOutOfMemory, "the allocator has no memory for {}", what);
}

VirtualMachine::Impl::Impl(Program linked, MemoryAccount* run_account, MemoryAccount* home_account,
                           const Limits& own_limits)
    : program(std::move(linked)),
      rep(program.rep()),
      account(run_account),
      home(home_account),
      heap(run_account, rep.storage_fill),
      limits(own_limits),
      stack(run_account),
      frames(run_account),
      args(run_account),
      temporaries(run_account),
      workspaces(run_account),
      destinations(run_account),
      leaf_values(run_account),
      output_ranges(run_account),
      moved(home_account) {
  account->set_limit(limits.bytes);
  home->set_limit(limits.bytes);
}

VirtualMachine::Impl::~Impl() {
  DropKernelState();
  for (const RewireFFIAny& input : inputs) heap.Unpin(input);
  ReplaceResult({});
}

void VirtualMachine::Impl::DropKernelState() {
  for (KernelSlot& slot : slots) {
    if (slot.deleter != nullptr) slot.deleter(slot.state);
  }
  slots = {};
}

RewireFFIAny* VirtualMachine::Impl::InputsOf(std::uint32_t function) {
  if (rep.functions[function].input_count == 0) return nullptr;
  if (inputs.empty() && !inputs.Make(home, rep.input_count)) return nullptr;
  return inputs.data() + rep.functions[function].first_input;
}

// A read-only copy of a host tensor with one reference of the VM's; null when there is no memory. Not in an
// arena: it stays between runs.
TensorObject* VirtualMachine::Impl::CopyOf(const DLTensor& dl) {
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  TensorObject* copy = account == home ? NewHeapTensor(heap, rep.devices[kHostDevice], dl.dtype, shape)
                                       : NewSharedHostTensor(dl.dtype, shape, home);
  if (copy == nullptr) return nullptr;
  CopyElements(dl, copy->tensor.data);
  copy->flags |= TensorObject::kReadOnly;
  return copy;
}

// Takes over the VM's reference to `value`; the earlier result's goes back to the heap when nobody else holds
// it.
void VirtualMachine::Impl::ReplaceResult(const RewireFFIAny& value) {
  heap.Share(value);
  AdoptResult(value);
}

// The same for a value that is shared.
void VirtualMachine::Impl::AdoptResult(const RewireFFIAny& value) {
  const RewireFFIAny before = result.Release();
  result = Value::Adopt(value);
  heap.Unpin(before);
}

void VirtualMachine::Impl::GiveBackRunMemory() {
  stack.Release();
  frames.Release();
  args.Release();
  temporaries.Release();
  workspaces.Release();
  destinations.Release();
  leaf_values.Release();
  output_ranges.Release();
  heap.Release();
}

void VirtualMachine::Impl::EndOfCall() {
  heap.EndOfCall();
  stack.Shrink();
  frames.Shrink();
  args.Shrink();
  temporaries.Shrink();
  leaf_values.Shrink();
}

Status VirtualMachine::Impl::Run(std::uint32_t function, const RewireFFIAny* run_inputs) {
  if (__builtin_expect(bounded(), 0)) return RunBounded(function, run_inputs);
  Status status = RunOnce(function, run_inputs);
  EndOfCall();
  return status;
}

Status VirtualMachine::Impl::RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs) {
  RewireFFIAny value{};
  if (slots.empty() && !slots.Make(home, static_cast<std::uint32_t>(rep.kernels.size()))) {
    return NoMemory("the kernels' state");
  }
  if (!args.Resize(rep.max_args)) return NoMemory("kernel arguments");
  const bool bound = !outputs.empty() && outputs[function].bound > 0;
  if (bound) {
    if (Status ok = PrepareOutputs(function, run_inputs); !ok) return ok;
  }
  Status status = Interpreter(*this).Run(function, run_inputs, bound, &value);
  if (account == home) {
    ReplaceResult(value);
  } else {
    if (status && !Evacuate(&heap, home, &moved, &value)) {
      heap.Release(value);
      value = {};
      status = NoMemory("the result outside the SharedArena");
    }
    AdoptResult(value);
  }
  result_function = function;
  return status;
}

// Every run begins with the block as it was after the VM's making, so that it needs no more than the first.
Status VirtualMachine::Impl::RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs) {
  const ArenaGuard guard(arena);
  if (!guard.ok()) {
    return Fail(StatusCode::kBusy,
                "the SharedArena is in use by a run of another VirtualMachine; VMs that share one never run "
                "at once");
  }
  if (!arena) ReplaceResult({});
  GiveBackRunMemory();
  block->ClearRefused();
  Status status = RunOnce(function, run_inputs);
  GiveBackRunMemory();
  return status || !block->refused() ? status : TooSmall(status.error(), function);
}

Status VirtualMachine::Impl::TooSmall(const Error& error, std::uint32_t function) const {
  return Fail(error.code(),
              "{}; the {}{} bytes is too small: Program::TryMemoryBound says how much function {} needs",
              error.message(), arena ? "SharedArena of " : "StaticMemory with room for ", block->room(),
              FunctionName(function));
}

RewireFFIAny VirtualMachine::Impl::ResultNode(std::uint32_t target) const {
  const Type& type = rep.module().functions[result_function].result;
  RewireFFIAny value = result.any();
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

}  // namespace rewire
