// SPDX-License-Identifier: Apache-2.0
// A VM's state and its runs.
#include "rewire/vm/run/vm_impl.h"

#include <utility>

#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/value/shape.h"

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
      heap(run_account, rep.storage_fill, rep.output_alignment),
      limits(own_limits),
      blocks(run_account),
      home_blocks(home_account),
      stack(&blocks),
      frames(&blocks),
      args(&blocks),
      temporaries(&blocks),
      workspaces(&blocks),
      destinations(&blocks),
      leaf_values(&blocks),
      output_ranges(&blocks),
      input_walk(&blocks),
      moved(&home_blocks) {
  account->set_limit(limits.bytes);
  home->set_limit(limits.bytes);
  account->set_reclaim(
      [](void* vm) {
        static_cast<Impl*>(vm)->blocks.Free();
        static_cast<Impl*>(vm)->heap.Reclaim();
      },
      this);
}

VirtualMachine::Impl::~Impl() {
  account->set_reclaim(nullptr, nullptr);
  DropKernelState();
  for (const RewireFFIAny& input : inputs) heap.Unpin(input);
  ReplaceResult({});
}

void VirtualMachine::Impl::DropKernelState() {
  const AccountArray<KernelSlot> dropped = std::move(slots);
  for (const KernelSlot& slot : dropped) {
    if (slot.deleter != nullptr) slot.deleter(slot.state);
  }
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

// Takes over the VM's reference to `value`. The earlier result returns to the heap if nobody else holds it.
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

void VirtualMachine::Impl::ReleaseArrays() {
  stack.Release();
  frames.Release();
  args.Release();
  temporaries.Release();
  workspaces.Release();
  destinations.Release();
  leaf_values.Release();
  output_ranges.Release();
  input_walk.Release();
}

// Between two runs: what nothing uses now, and only the next run might.
void VirtualMachine::Impl::FreeSpareMemory() {
  ReleaseArrays();
  blocks.Free();
  heap.Reclaim();
}

void VirtualMachine::Impl::GiveBackRunMemory() {
  ReleaseArrays();
  blocks.Free();
  heap.Release();
}

void VirtualMachine::Impl::EndOfCall() {
  heap.EndOfCall();
  if (limited()) return blocks.EndRun();
  stack.Shrink();
  frames.Shrink();
  args.Shrink();
  temporaries.Shrink();
  leaf_values.Shrink();
}

Status VirtualMachine::Impl::Run(std::uint32_t function, const RewireFFIAny* run_inputs) {
  // What was asked of an earlier run is not asked of this one.
  if (__builtin_expect((interrupts.load(std::memory_order_relaxed) & kCancelRequested) != 0, 0)) {
    interrupts.fetch_and(~kCancelRequested, std::memory_order_relaxed);
  }
  current_run.store(++last_run, std::memory_order_release);
  Status status;
  if (__builtin_expect(bounded(), 0)) {
    status = RunBounded(function, run_inputs);
  } else {
    blocks.Keep(limited());
    if (limited()) {
      ReleaseArrays();
      blocks.BeginRun();
    }
    status = RunOnce(function, run_inputs);
    EndOfCall();
  }
  current_run.store(0, std::memory_order_relaxed);
  inputs_of_run = nullptr;
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
