// SPDX-License-Identifier: Apache-2.0
#include "vm/vm_pool.h"

#include <atomic>
#include <utility>

namespace rewire {

std::size_t VmPool::OwnShelf() {
  static std::atomic<std::size_t> threads{0};
  thread_local std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number % kShelves;
}

std::optional<VirtualMachine> VmPool::Shelf::Take() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (idle.empty()) return std::nullopt;
  VirtualMachine vm = std::move(idle.back());
  idle.pop_back();
  return vm;
}

VirtualMachine VmPool::Take(const Program& program) {
  const std::size_t own = OwnShelf();
  for (std::size_t i = 0; i < kShelves; ++i) {
    if (std::optional<VirtualMachine> vm = shelves_[(own + i) % kShelves].Take()) return *std::move(vm);
  }
  return VirtualMachine(program);
}

void VmPool::Give(VirtualMachine vm) {
  Shelf& shelf = shelves_[OwnShelf()];
  const std::lock_guard<std::mutex> lock(shelf.mutex);
  if (shelf.idle.size() < kMaxIdle) shelf.idle.push_back(std::move(vm));
}

Result<Value> Program::TryRun(std::string_view function, Span<const Value> inputs,
                              const Limits& limits) const {
  VirtualMachine vm = pool_ != nullptr ? pool_->Take(*this) : VirtualMachine(*this);
  vm.SetLimits(limits);
  Result<Value> result = vm.TryInvoke(function, inputs);
  vm.DropResult();
  if (pool_ != nullptr) pool_->Give(std::move(vm));
  return result;
}

Status Program::TryRun(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs,
                       const Limits& limits) const {
  VirtualMachine vm = pool_ != nullptr ? pool_->Take(*this) : VirtualMachine(*this);
  vm.SetLimits(limits);
  Status status = vm.TryInvoke(function, inputs, outputs);
  vm.DropResult();
  if (pool_ != nullptr) pool_->Give(std::move(vm));
  return status;
}

}  // namespace rewire
