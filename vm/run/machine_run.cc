// SPDX-License-Identifier: Apache-2.0
//
// A machine's runs.
#include <utility>

#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/vm/run/interpreter_run.h"
#include "rewire/vm/run/machine.h"
#include "rewire/vm/run/vm_hold.h"
#include "rewire/vm/virtual_machine.h"

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

// Takes over the run's reference to `value`. It stays the VM's own if it is a tensor that
// nothing outside refers to, as most are. All others are shared at once. A kernel may hold a part of an ADT,
// and nobody else keeps a constant of another Program. Results of hosts that ask for them are shared at once,
// too. Otherwise their blocks would count for the next run.
REWIRE_INLINE void Machine::SetResult(const RewireFFIAny& value) {
  if (REWIRE_UNLIKELY(shared_result.any().type_index != kRewireFFINone)) DropResult();
  heap.Release(std::exchange(own_result, value));
  const bool stays = value.type_index == kTensorKind && TensorOf(value)->local < kSharing &&
                     TensorOf(value)->alone() && !result_wanted;
  if (REWIRE_UNLIKELY(!stays)) ShareResult();
}

// Makes the arrays that every run needs.
Status Machine::MakeArrays() {
  if (slots.empty() && !slots.Make(memory.home, static_cast<std::uint32_t>(rep.kernels.size())))
    return memory.NoMemory("the kernels' state");
  if (!run.args.Resize(rep.max_args)) return memory.NoMemory("kernel arguments");
  run.ready = true;
  return {};
}

// Without what a plain run does not need: its first time, bound outputs, an observer, memory of its own.
REWIRE_INLINE Status Machine::RunFastPath(std::uint32_t function, const RewireFFIAny* run_inputs) {
  RewireFFIAny value;
  Status status;
  Interpreter(*this, &status).RunFastPath(function, run_inputs, &value);
  SetResult(value);
  result_function = function;
  return status;
}

Status Machine::RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs) {
  if (REWIRE_UNLIKELY(!run.ready)) {
    if (Status ok = MakeArrays(); !ok) return ok;
  }
  const bool bound = outputs.IsBound(function);
  if (bound) {
    if (Status ok = outputs.BeginRun(function, run_inputs); !ok) return ok;
  }
  RewireFFIAny value;
  Status status;
  Interpreter(*this, &status).Run(function, run_inputs, bound, &value);
  if (bound) outputs.EndRun();
  if (REWIRE_UNLIKELY(memory.apart())) status = TakeOut(status, &value);
  SetResult(value);
  result_function = function;
  return status;
}

REWIRE_INLINE void Machine::EndOfUnlimitedCall() {
  heap.EndOfCall();
  if (REWIRE_UNLIKELY(run.blocks.has_large()) && !limited()) run.Shrink();
}

void Machine::EndOfCall() {
  ShareResult();
  EndOfUnlimitedCall();
  if (limited()) run.blocks.EndRun();
}

template <bool kFastPath>
REWIRE_INLINE Status Machine::Run(std::uint32_t function, const RewireFFIAny* run_inputs) {
  const Array<EqualAxes>& equal_axes = rep.functions[function].equal_axes;
  if (REWIRE_UNLIKELY(!AxesAreEqual(equal_axes, run_inputs)))
    return AxesDiffer(rep.module(), function, equal_axes, run_inputs);
  interrupts.BeginRun();
  const bool unlimited = open_ends == 0 && !limited() && !memory.bounded();
  const bool plain = kFastPath && unlimited && run.ready && observer == nullptr && !memory.apart() &&
                     !outputs.IsBound(function);
  Status status = REWIRE_LIKELY(plain)       ? RunFastPath(function, run_inputs)
                  : REWIRE_LIKELY(unlimited) ? RunOnce(function, run_inputs)
                                             : RunSlowPath(function, run_inputs);
  // Work that goes on would have to end before the memory of a result of the VM's own is used again.
  if (REWIRE_UNLIKELY(open_ends != 0)) ShareResult();
  if (REWIRE_LIKELY(unlimited)) EndOfUnlimitedCall();
  interrupts.EndRun();
  return status;
}

Status Machine::CheckFunction(std::uint32_t function) const {
  if (function < rep.functions.size()) return {};
  return Fail(StatusCode::kInvalidArgument, "there is no function {}", function);
}

template <bool kFastPath>
REWIRE_INLINE Status Machine::InvokeInline(std::uint32_t function) {
  if (REWIRE_UNLIKELY(function >= rep.functions.size())) return CheckFunction(function);
  const LinkedFunction& linked = rep.functions[function];
  const std::uint32_t count = linked.input_count;
  const RewireFFIAny* const set = inputs.Of(linked);
  if (REWIRE_UNLIKELY(set == nullptr && count > 0)) return memory.NoMemory("inputs");
  for (const RewireFFIAny* input = set; input != set + count; ++input) {
    if (REWIRE_UNLIKELY(input->type_index == kRewireFFINone)) return inputs.Missing(function, input);
  }
  return Run<kFastPath>(function, set);
}

Status Machine::Invoke(std::uint32_t function) { return InvokeInline<false>(function); }

Result<Value> Machine::Invoke(std::string_view function, Span<const Value> values) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  if (Status ok = InvokeWith(*index, values); !ok) return Forward(ok);
  return SharedResult();
}

Status Machine::Invoke(std::string_view function, Span<const Value> values,
                       Span<const OutputBinding> bindings) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  const BoundOutputs::ForCall own(&outputs);
  Status status;
  for (const OutputBinding& binding : bindings) {
    if (status) status = outputs.SetForCall(*index, binding);
  }
  detaches_outputs = true;
  if (status) status = InvokeWith(*index, values);
  detaches_outputs = false;
  if (status) DetachOutputs(*index);
  return status;
}

namespace {

// The fast path of BoundInputs::Take: true of a tensor of the type on the host that can be used as it lies.
// False means that it must look.
REWIRE_INLINE bool IsReadyInput(const Module& module, const TypeNode& type, const RewireFFIAny& value) {
  if (type.kind != TypeKind::kTensor || value.type_index != kTensorKind) return false;
  const TensorObject& object = *TensorOf(value);
  const DLTensor& dl = object.tensor;
  const bool on_host = IsHostDevice(dl.device) && (type.device == kHostDevice || type.device == kAnyDevice);
  if (!on_host || type.rank != dl.ndim || type.dtype != dl.dtype || dl.strides == nullptr) return false;
  std::int64_t expected = 1;
  for (std::size_t i = type.dims.size(); i-- > 0;) {
    const std::int64_t size = dl.shape[i];
    const Dim dim = type.dims[i];
    // A symbol may have a limit.
    if (dim != size && (dim >= 0 || !module.symbol_limits.empty())) return false;
    if (size != 1 && dl.strides[i] != expected) return false;
    expected *= size;
  }
  const std::uint64_t element = ElementBytes({dl.dtype.code, dl.dtype.bits, 1});
  const auto first = reinterpret_cast<std::uintptr_t>(dl.data);
  return first != 0 && (element & (element - 1)) == 0 && ((first + dl.byte_offset) & (element - 1)) == 0 &&
         first + object.bytes >= first;
}

}  // namespace

// A run over these inputs, for this call alone. Where no output is bound, the registers take over the
// references to them.
Status Machine::InvokeWith(std::uint32_t function, Span<const Value> values) {
  const Module& module = rep.module();
  const Function& target = module.functions[function];
  const std::size_t count = values.size();
  if (count != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", target.name,
                target.inputs.size(), count);
  }
  // In the VM's own memory where there are many.
  constexpr std::size_t kFew = 16;
  RewireFFIAny few[kFew];
  AccountArray<RewireFFIAny> many;
  if (count > kFew && !many.Make(memory.home, static_cast<std::uint32_t>(count)))
    return memory.NoMemory("inputs");
  RewireFFIAny* const taken = count > kFew ? many.data() : few;
  Status status;
  std::uint32_t done = 0;
  for (; done < count; ++done) {
    const RewireFFIAny& value = values[done].any();
    if (REWIRE_LIKELY(IsReadyInput(module, target.inputs[done].type.nodes[0], value))) {
      taken[done] = value;
      ObjectHeap::Pin(value);
      continue;
    }
    taken[done] = {};
    status = inputs.Take({function, done}, values[done], &taken[done]);
    if (!status) break;
  }
  if (status) {
    given_inputs = taken;
    status = Run<false>(function, taken);
    given_inputs = nullptr;
  }
  for (std::uint32_t i = 0; i < done; ++i) heap.Unpin(taken[i]);
  return status;
}

// A run after one that left something behind, or with memory that is limited.
Status Machine::RunSlowPath(std::uint32_t function, const RewireFFIAny* run_inputs) {
  Status status;
  bool done = false;
  if (open_ends != 0) status = ContinueRun(function, run_inputs, &done);
  // A failure of an earlier run was told, or a recording replayed.
  if (done) return status;
  if (memory.bounded()) return RunBounded(function, run_inputs);
  if (limited()) {
    run.blocks.Keep(true);
    ReleaseArrays();
    run.blocks.BeginRun();
  }
  status = RunOnce(function, run_inputs);
  EndOfCall();
  return status;
}

// Moves a run's result out of the arena.
Status Machine::TakeOut(const Status& status, RewireFFIAny* value) {
  if (!status || Evacuate(&heap, memory.home, &moved, value)) return status;
  heap.Release(*value);
  *value = {};
  return memory.NoMemory("the result outside the SharedArena");
}

// Every run begins with the block as it was after the VM's making, so that it needs no more than the first.
Status Machine::RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs) {
  const ArenaGuard guard(memory.arena);
  if (!guard.ok()) {
    return Fail(StatusCode::kBusy,
                "the SharedArena is in use by a run of another VirtualMachine; VMs that share one never run "
                "at once");
  }
  if (!memory.arena) DropResult();
  GiveBackRunMemory();
  memory.block->ClearRefused();
  Status status = RunOnce(function, run_inputs);
  ShareResult();
  GiveBackRunMemory();
  return status || !memory.block->refused() ? status : TooSmall(status.error(), function);
}

// Here, because a call of a small function costs no more than its instructions do.
Status VirtualMachine::TryInvoke(std::uint32_t function) {
  const VmHold hold(impl_.get(), VmHold::ForRun());
  if (!hold) return hold.Refusal();
  return impl_->InvokeInline<true>(function);
}

Status Machine::TooSmall(const Error& error, std::uint32_t function) const {
  return Fail(error.code(),
              "{}; the {}{} bytes is too small: Program::TryMemoryBound says how much function {} needs",
              error.message(), memory.arena ? "SharedArena of " : "StaticMemory with room for ",
              memory.block->room(), FunctionName(function));
}

}  // namespace rewire
