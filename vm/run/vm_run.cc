// SPDX-License-Identifier: Apache-2.0
//
// A VM's runs and their results.
#include <utility>

#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/vm/run/interpreter_run.h"
#include "rewire/vm/run/vm_hold.h"
#include "rewire/vm/run/vm_impl.h"
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
REWIRE_INLINE void VmImpl::SetResult(const RewireFFIAny& value) {
  if (REWIRE_UNLIKELY(shared_result.any().type_index != kRewireFFINone)) DropResult();
  heap.Release(std::exchange(own_result, value));
  const bool stays = value.type_index == kTensorKind && TensorOf(value)->local < kSharing &&
                     TensorOf(value)->alone() && !result_wanted;
  if (REWIRE_UNLIKELY(!stays)) ShareResult();
}

void VmImpl::DropResult() {
  heap.Unpin(shared_result.Release());
  heap.Release(std::exchange(own_result, {}));
}

void VmImpl::ShareResult() {
  if (own_result.type_index == kRewireFFINone) return;
  heap.Share(own_result);
  shared_result = Value::Adopt(std::exchange(own_result, {}));
}

const Value& VmImpl::SharedResult() {
  result_wanted = true;
  ShareResult();
  return shared_result;
}

// What every run needs.
Status VmImpl::MakeArrays() {
  if (slots.empty() && !slots.Make(home, static_cast<std::uint32_t>(rep.kernels.size())))
    return NoMemory("the kernels' state");
  if (!args.Resize(rep.max_args)) return NoMemory("kernel arguments");
  has_arrays = true;
  return {};
}

// Without what a plain run does not need: its first time, bound outputs, an observer, memory of its own.
REWIRE_INLINE Status VmImpl::RunFastPath(std::uint32_t function, const RewireFFIAny* run_inputs) {
  RewireFFIAny value;
  Status status;
  Interpreter(*this, &status).RunFastPath(function, run_inputs, &value);
  SetResult(value);
  result_function = function;
  return status;
}

Status VmImpl::RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs) {
  if (REWIRE_UNLIKELY(!has_arrays)) {
    if (Status ok = MakeArrays(); !ok) return ok;
  }
  const bool bound = IsBound(function);
  if (bound) {
    if (Status ok = PrepareOutputs(function, run_inputs); !ok) return ok;
  }
  RewireFFIAny value;
  Status status;
  Interpreter(*this, &status).Run(function, run_inputs, bound, &value);
  if (bound) inputs_of_run = nullptr;
  if (REWIRE_UNLIKELY(account != home)) status = TakeOut(status, &value);
  SetResult(value);
  result_function = function;
  return status;
}

REWIRE_INLINE void VmImpl::EndOfUnlimitedCall() {
  heap.EndOfCall();
  if (REWIRE_UNLIKELY(blocks.has_large())) ShrinkArrays();
}

void VmImpl::EndOfCall() {
  ShareResult();
  EndOfUnlimitedCall();
  if (limited()) blocks.EndRun();
}

template <bool kFastPath>
REWIRE_INLINE Status VmImpl::Run(std::uint32_t function, const RewireFFIAny* run_inputs) {
  const Array<EqualAxes>& equal_axes = rep.functions[function].equal_axes;
  if (REWIRE_UNLIKELY(!AxesAreEqual(equal_axes, run_inputs)))
    return AxesDiffer(rep.module(), function, equal_axes, run_inputs);
  BeginRun();
  const bool unlimited = open_ends == 0 && !limited() && !bounded();
  const bool plain =
      kFastPath && unlimited && has_arrays && observer == nullptr && account == home && !IsBound(function);
  Status status = REWIRE_LIKELY(plain)       ? RunFastPath(function, run_inputs)
                  : REWIRE_LIKELY(unlimited) ? RunOnce(function, run_inputs)
                                             : RunSlowPath(function, run_inputs);
  // Work that goes on would have to end before the memory of a result of the VM's own is used again.
  if (REWIRE_UNLIKELY(open_ends != 0)) ShareResult();
  if (REWIRE_LIKELY(unlimited)) EndOfUnlimitedCall();
  runs.End();
  return status;
}

RewireFFIAny* VmImpl::InputsOf(std::uint32_t function) {
  const LinkedFunction& linked = rep.functions[function];
  if (linked.input_count == 0) return nullptr;
  if (inputs.empty() && !inputs.Make(home, rep.input_count)) return nullptr;
  return inputs.data() + linked.first_input;
}

Status VmImpl::CheckFunction(std::uint32_t function) const {
  if (function < rep.functions.size()) return {};
  return Fail(StatusCode::kInvalidArgument, "there is no function {}", function);
}

Status VmImpl::InputMissing(std::uint32_t function, const RewireFFIAny* input) {
  const std::uint32_t first = rep.functions[function].first_input;
  return Fail(
      StatusCode::kInvalidArgument, "{} is not set; set it before invoking",
      InputText(rep.module().functions[function], static_cast<std::uint32_t>(input - inputs.data()) - first));
}

template <bool kFastPath>
REWIRE_INLINE Status VmImpl::InvokeInline(std::uint32_t function) {
  if (REWIRE_UNLIKELY(function >= rep.functions.size())) return CheckFunction(function);
  const LinkedFunction& linked = rep.functions[function];
  const std::uint32_t count = linked.input_count;
  if (REWIRE_UNLIKELY(inputs.empty() && count > 0) && InputsOf(function) == nullptr)
    return NoMemory("inputs");
  const RewireFFIAny* const set = count > 0 ? inputs.data() + linked.first_input : nullptr;
  for (const RewireFFIAny* input = set; input != set + count; ++input) {
    if (REWIRE_UNLIKELY(input->type_index == kRewireFFINone)) return InputMissing(function, input);
  }
  return Run<kFastPath>(function, set);
}

Status VmImpl::Invoke(std::uint32_t function) { return InvokeInline<false>(function); }

Result<Value> VmImpl::Invoke(std::string_view function, Span<const Value> values) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  if (Status ok = InvokeWith(*index, values); !ok) return Forward(ok);
  return SharedResult();
}

Status VmImpl::Invoke(std::string_view function, Span<const Value> values,
                      Span<const OutputBinding> bindings) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  // The call's own bindings stand in for the lasting ones.
  AccountArray<OutputSlots> kept;
  std::swap(kept, outputs);
  Status status;
  for (const OutputBinding& binding : bindings) {
    if (status) status = BindForCall(*index, binding);
  }
  detaches_outputs = true;
  if (status) status = InvokeWith(*index, values);
  detaches_outputs = false;
  if (status) DetachOutputs(*index);
  std::swap(kept, outputs);
  return status;
}

namespace {

// The fast path of VmImpl::TakeInput: true of a tensor of the type on the host that can be used as it lies.
// False means that TakeInput must look.
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
Status VmImpl::InvokeWith(std::uint32_t function, Span<const Value> values) {
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
  if (count > kFew && !many.Make(home, static_cast<std::uint32_t>(count))) return NoMemory("inputs");
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
    status = TakeInput({function, done}, values[done], &taken[done]);
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
Status VmImpl::RunSlowPath(std::uint32_t function, const RewireFFIAny* run_inputs) {
  Status status;
  bool done = false;
  if (open_ends != 0) status = ContinueRun(function, run_inputs, &done);
  // A failure of an earlier run was told, or a recording replayed.
  if (done) return status;
  if (bounded()) return RunBounded(function, run_inputs);
  if (limited()) {
    blocks.Keep(true);
    ReleaseArrays();
    blocks.BeginRun();
  }
  status = RunOnce(function, run_inputs);
  EndOfCall();
  return status;
}

void VmImpl::ShrinkArrays() {
  if (limited()) return;
  blocks.ForgetLarge();
  stack.Shrink();
  frames.Shrink();
  args.Shrink();
  has_arrays = false;  // the last call of a kernel may have had few arguments
  temporaries.Shrink();
  leaf_values.Shrink();
}

// Moves a run's result out of the arena.
Status VmImpl::TakeOut(const Status& status, RewireFFIAny* value) {
  if (!status || Evacuate(&heap, home, &moved, value)) return status;
  heap.Release(*value);
  *value = {};
  return NoMemory("the result outside the SharedArena");
}

// Every run begins with the block as it was after the VM's making, so that it needs no more than the first.
Status VmImpl::RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs) {
  const ArenaGuard guard(arena);
  if (!guard.ok()) {
    return Fail(StatusCode::kBusy,
                "the SharedArena is in use by a run of another VirtualMachine; VMs that share one never run "
                "at once");
  }
  if (!arena) DropResult();
  GiveBackRunMemory();
  block->ClearRefused();
  Status status = RunOnce(function, run_inputs);
  ShareResult();
  GiveBackRunMemory();
  return status || !block->refused() ? status : TooSmall(status.error(), function);
}

// Here, because a call of a small function costs no more than its instructions do.
Status VirtualMachine::TryInvoke(std::uint32_t function) {
  const VmHold hold(impl_.get(), VmHold::ForRun());
  if (!hold) return hold.Refusal();
  return impl_->InvokeInline<true>(function);
}

Status VmImpl::TooSmall(const Error& error, std::uint32_t function) const {
  return Fail(error.code(),
              "{}; the {}{} bytes is too small: Program::TryMemoryBound says how much function {} needs",
              error.message(), arena ? "SharedArena of " : "StaticMemory with room for ", block->room(),
              FunctionName(function));
}

RewireFFIAny VmImpl::ResultNode(std::uint32_t target) const {
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

Result<Value> VmImpl::Output(std::uint32_t leaf) {
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

}  // namespace rewire
