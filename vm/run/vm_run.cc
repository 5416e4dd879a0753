// SPDX-License-Identifier: Apache-2.0
//
// A VM's runs and their results.
#include <utility>

#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/run/vm_impl.h"

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

// Takes over the VM's reference to `value`. The earlier result returns to the heap if nobody else holds it.
void VmImpl::ReplaceResult(const RewireFFIAny& value) {
  heap.Share(value);
  AdoptResult(value);
}

// The same for a value that is shared.
void VmImpl::AdoptResult(const RewireFFIAny& value) {
  const RewireFFIAny before = result.Release();
  result = Value::Adopt(value);
  heap.Unpin(before);
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

Status VmImpl::Invoke(std::uint32_t function) {
  if (__builtin_expect(function >= rep.functions.size(), 0)) return CheckFunction(function);
  const RewireFFIAny* set = InputsOf(function);
  const std::uint32_t count = rep.functions[function].input_count;
  if (set == nullptr && count > 0) return NoMemory("inputs");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (__builtin_expect(set[i].type_index == kRewireFFINone, 0)) {
      return Fail(StatusCode::kInvalidArgument, "{} is not set; set it before invoking",
                  InputText(rep.module().functions[function], i));
    }
  }
  return Run(function, set);
}

Result<Value> VmImpl::Invoke(std::string_view function, Span<const Value> values) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  if (Status ok = InvokeWith(*index, values); !ok) return Forward(ok);
  return result;
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

// A run over these inputs, for this call alone.
Status VmImpl::InvokeWith(std::uint32_t function, Span<const Value> values) {
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

Status VmImpl::Run(std::uint32_t function, const RewireFFIAny* run_inputs) {
  // What was asked of an earlier run is not asked of this one.
  if (__builtin_expect((interrupts.load(std::memory_order_relaxed) & kCancelRequested) != 0, 0)) {
    interrupts.fetch_and(~kCancelRequested, std::memory_order_relaxed);
  }
  current_run.store(++last_run, std::memory_order_release);
  Status status;
  bool done = false;
  if (__builtin_expect(open_ends != 0, 0)) status = ContinueRun(function, run_inputs, &done);
  if (__builtin_expect(done, 0)) {
    // A failure of an earlier run was told, or a recording replayed.
  } else if (__builtin_expect(bounded(), 0)) {
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

void VmImpl::EndOfCall() {
  heap.EndOfCall();
  if (limited()) return blocks.EndRun();
  stack.Shrink();
  frames.Shrink();
  args.Shrink();
  temporaries.Shrink();
  leaf_values.Shrink();
}

Status VmImpl::RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs) {
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
Status VmImpl::RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs) {
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

Status VmImpl::TooSmall(const Error& error, std::uint32_t function) const {
  return Fail(error.code(),
              "{}; the {}{} bytes is too small: Program::TryMemoryBound says how much function {} needs",
              error.message(), arena ? "SharedArena of " : "StaticMemory with room for ", block->room(),
              FunctionName(function));
}

RewireFFIAny VmImpl::ResultNode(std::uint32_t target) const {
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

Result<Value> VmImpl::Output(std::uint32_t leaf) const {
  if (result.kind() == ValueKind::kNone) {
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
