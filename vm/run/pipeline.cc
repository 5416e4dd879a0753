// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/pipeline.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/assert.h"
#include "rewire/vm/run/machine.h"

namespace rewire {

struct Pipeline::Impl {
  Impl(const Program& linked, std::uint32_t called) : program(linked), function(called) {}

  const Program program;
  const std::uint32_t function;
  Array<OwnedMachine> vms;  // a ring: call i runs on VM i modulo depth

  std::mutex mutex;  // of what follows; a VM belongs to the pusher before its call counts, then to the popper
  std::condition_variable changed;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  bool closed = false;

  Machine& At(std::uint64_t call) { return *vms[static_cast<std::uint32_t>(call % vms.size())]; }
};

namespace {

constexpr std::uint32_t kMostDepth = 64;

// Ends what a call has set on its VM.
void Release(Machine* vm, const std::string& function) {
  (void)vm->inputs.Clear(function);
  (void)vm->outputs.ClearAll(function);
}

Status Start(Machine* vm, std::uint32_t function, Span<const Value> inputs,
             Span<const OutputBinding> outputs) {
  const std::size_t expected = vm->rep.module().functions[function].inputs.size();
  if (inputs.size() != expected) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given",
                vm->FunctionName(function), expected, inputs.size());
  }
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    if (Status set = vm->inputs.Set({function, i}, inputs[i]); !set) return set;
  }
  for (const OutputBinding& binding : outputs) {
    if (Status bound = vm->outputs.SetForCall(function, binding); !bound) return bound;
  }
  vm->detaches_outputs = true;
  Status started = vm->InvokeAsync(function);
  vm->detaches_outputs = false;
  return started;
}

}  // namespace

Result<Pipeline> Pipeline::TryMake(const Program& program, std::uint32_t depth, const std::string& function,
                                   const Limits& limits) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  if (depth == 0 || depth > kMostDepth) {
    return Fail(StatusCode::kInvalidArgument, "a pipeline of depth {}; 1 to {} expected", depth, kMostDepth);
  }
  auto impl = std::make_unique<Impl>(program, *index);
  for (std::uint32_t i = 0; i < depth; ++i) impl->vms.push_back(Machine::Make(program, limits));
  return Pipeline(std::move(impl));
}

Pipeline::Pipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

Status Pipeline::TryPush(Span<const Value> inputs, Span<const OutputBinding> outputs) {
  REWIRE_ASSERT(impl_ != nullptr, "TryPush on a Pipeline that was moved from");
  std::uint64_t call = 0;
  {
    std::unique_lock<std::mutex> lock(impl_->mutex);
    impl_->changed.wait(lock,
                        [&] { return impl_->closed || impl_->pushed - impl_->popped < impl_->vms.size(); });
    if (impl_->closed) return Fail(StatusCode::kCancelled, "the pipeline is closed");
    call = impl_->pushed;
  }
  Machine& vm = impl_->At(call);
  if (Status started = Start(&vm, impl_->function, inputs, outputs); !started) {
    (void)vm.WaitForStarted();
    Release(&vm, vm.FunctionName(impl_->function));
    return started;
  }
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    ++impl_->pushed;
  }
  impl_->changed.notify_all();
  return {};
}

Result<Value> Pipeline::TryPop() {
  REWIRE_ASSERT(impl_ != nullptr, "TryPop on a Pipeline that was moved from");
  std::uint64_t call = 0;
  {
    std::unique_lock<std::mutex> lock(impl_->mutex);
    impl_->changed.wait(lock, [&] { return impl_->closed || impl_->popped < impl_->pushed; });
    if (impl_->popped == impl_->pushed) {
      return Fail(StatusCode::kCancelled, "the pipeline is closed, and no call is left in it");
    }
    call = impl_->popped;
  }
  Machine& vm = impl_->At(call);
  const Status finished = vm.WaitForStarted();
  if (finished) vm.DetachOutputs(impl_->function);
  Value result = vm.SharedResult();
  vm.DropResult();
  Release(&vm, vm.FunctionName(impl_->function));
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    ++impl_->popped;
  }
  impl_->changed.notify_all();
  return finished ? Result<Value>(std::move(result)) : Forward(finished);
}

void Pipeline::Close() {
  REWIRE_ASSERT(impl_ != nullptr, "Close on a Pipeline that was moved from");
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->closed = true;
  }
  impl_->changed.notify_all();
}

std::uint32_t Pipeline::size() const {
  REWIRE_ASSERT(impl_ != nullptr, "size of a Pipeline that was moved from");
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return static_cast<std::uint32_t>(impl_->pushed - impl_->popped);
}

std::uint32_t Pipeline::depth() const {
  REWIRE_ASSERT(impl_ != nullptr, "depth of a Pipeline that was moved from");
  return static_cast<std::uint32_t>(impl_->vms.size());
}

}  // namespace rewire
