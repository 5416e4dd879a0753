// SPDX-License-Identifier: Apache-2.0
#include "vm/vm_pool.h"

#include <utility>

namespace rewire {

VirtualMachine VmPool::Take(const Program& program) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      VirtualMachine vm = std::move(idle_.back());
      idle_.pop_back();
      return vm;
    }
  }
  return VirtualMachine(program);
}

void VmPool::Give(VirtualMachine vm) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(vm));
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
