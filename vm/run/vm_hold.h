// SPDX-License-Identifier: Apache-2.0
//
// VmHold: one call at a time for each VM.
#pragma once

#include <atomic>
#include <cstdint>

#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/base/status.h"
#include "rewire/vm/run/machine.h"

namespace rewire {

// Holds a VM during a call that changes it. Meanwhile other calls are refused, whether they come from another
// thread or from a callback. So no callback sees a VM in the middle of a change. Taking the hold is one
// exchange: of two threads that come at once, one is refused.
class VmHold {
 public:
  // A change waits for work that an earlier run has left, and ends a recording.
  enum Purpose : std::uint8_t { kChange, kRun, kLook };

  // `vm` is null if the VM was moved from.
  explicit VmHold(Machine* vm, Purpose purpose = kChange) : empty_(vm == nullptr) {
    Begin(vm);
    if (REWIRE_UNLIKELY(purpose == kChange && vm_ != nullptr && vm_->open_ends != 0)) vm_->Settle();
  }
  // The same as kRun, inlined.
  struct ForRun {};
  REWIRE_INLINE VmHold(Machine* vm, ForRun /*purpose*/) : empty_(vm == nullptr) { Begin(vm); }
  ~VmHold() {
    if (vm_ != nullptr) vm_->held.store(false, std::memory_order_release);
  }
  VmHold(const VmHold&) = delete;
  VmHold& operator=(const VmHold&) = delete;

  explicit operator bool() const { return vm_ != nullptr; }
  // Why the VM could not be held.
  Status Refusal() const { return RefusalOf(empty_); }

 private:
  REWIRE_INLINE void Begin(Machine* vm) {
    if (vm != nullptr && !vm->held.exchange(true, std::memory_order_acquire)) vm_ = vm;
  }

  // Takes no VmHold, which so needs no place in memory.
  [[gnu::cold]] static Status RefusalOf(bool empty);

  Machine* vm_ = nullptr;
  bool empty_;
};

// The error for a VM that was moved from.
[[gnu::cold]] Status EmptyVm();

}  // namespace rewire
