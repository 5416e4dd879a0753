// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/vm_pool.h"

#include "rewire/base/likely.h"

#include <utility>

namespace rewire {

namespace {

// initial-exec: reading the variable is one instruction, even in a shared library.
__attribute__((tls_model("initial-exec"))) constinit thread_local std::size_t number_of_thread = 0;

}  // namespace

std::size_t VmPool::NumberOfThread() {
  static std::atomic<std::size_t> threads{0};
  if (number_of_thread == 0) number_of_thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number_of_thread - 1;
}

VmPool::~VmPool() {
  for (Shelf& shelf : shelves_) const OwnedMachine ended(shelf.first.load(std::memory_order_acquire));
}

OwnedMachine VmPool::Shelf::Take() {
  if (first.load(std::memory_order_relaxed) != nullptr) {
    if (Machine* vm = first.exchange(nullptr, std::memory_order_acquire)) return OwnedMachine(vm);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  if (idle.empty()) return nullptr;
  OwnedMachine vm = std::move(idle.back());
  idle.pop_back();
  return vm;
}

OwnedMachine VmPool::Take(const Program& program, std::size_t thread) {
  for (std::size_t i = 0; i < kShelves; ++i) {
    if (OwnedMachine vm = shelves_[(thread + i) % kShelves].Take(); vm != nullptr) return vm;
  }
  return Machine::Make(program, {});
}

void VmPool::Give(OwnedMachine vm, std::size_t thread) {
  Shelf& shelf = shelves_[thread % kShelves];
  // Nobody else puts a VM there, so a look and a write are enough.
  if (thread < kShelves && shelf.first.load(std::memory_order_relaxed) == nullptr) {
    shelf.first.store(vm.release(), std::memory_order_release);
    return;
  }
  const std::lock_guard<std::mutex> lock(shelf.mutex);
  if (shelf.idle.size() + 1 < kMaxIdle) shelf.idle.push_back(std::move(vm));
}

namespace {

bool AreSame(const Limits& a, const Limits& b) {
  return a.depth == b.depth && a.steps == b.steps && a.bytes == b.bytes;
}

// A pooled VM for one call. Nobody else knows it, so it need not be held (vm_hold.h).
class PooledVm {
 public:
  PooledVm(const Program& program, const std::shared_ptr<VmPool>& pool, const Limits& limits)
      : pool_(pool),
        thread_(VmPool::NumberOfThread()),
        vm_(pool != nullptr ? pool->Take(program, thread_) : Machine::Make(program, {})) {
    if (REWIRE_UNLIKELY(!AreSame(vm_->limits, limits))) vm_->SetLimits(limits);
  }
  ~PooledVm() {
    if (vm_->has_result()) vm_->DropResult();
    if (pool_ != nullptr) pool_->Give(std::move(vm_), thread_);
  }
  PooledVm(const PooledVm&) = delete;
  PooledVm& operator=(const PooledVm&) = delete;
  Machine* operator->() { return vm_.get(); }

 private:
  const std::shared_ptr<VmPool>& pool_;
  std::size_t thread_;
  OwnedMachine vm_;
};

}  // namespace

Result<Value> Program::TryRun(std::string_view function, Span<const Value> inputs,
                              const Limits& limits) const {
  const Module& module = rep_->module();
  std::size_t index = PositionOfFunction(module, function);
  if (REWIRE_UNLIKELY(index == module.functions.size())) {
    // The empty name, which stands for a function, or a wrong one.
    const Result<std::uint32_t> found = FindFunction(function);
    if (!found) return Forward(found);
    index = *found;
  }
  PooledVm vm(*this, pool_, limits);
  if (Status ok = vm->InvokeWith(static_cast<std::uint32_t>(index), inputs); !ok) return Forward(ok);
  (void)vm->SharedResult();
  return std::move(vm->shared_result);  // the VM does not keep it
}

Status Program::TryRun(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs,
                       const Limits& limits) const {
  PooledVm vm(*this, pool_, limits);
  return vm->Invoke(function, inputs, outputs);
}

}  // namespace rewire
