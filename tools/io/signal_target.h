// SPDX-License-Identifier: Apache-2.0
//
// SignalTarget: the machine whose run a signal handler ends.
#pragma once

#include <sched.h>

#include <atomic>

namespace rewire::tools {

// `Machine` has Cancel(), which a signal handler may call: a VirtualMachine. Handlers may touch nothing but
// lock-free atomics.
template <typename Machine>
class SignalTarget {
 public:
  // Sets the machine; null: none. Returns the former one. No handler uses that one afterwards, whichever
  // thread it runs on.
  Machine* Exchange(Machine* machine) {
    Machine* const before = machine_.exchange(machine);
    // A handler that began earlier may have read the former machine. One on this thread has ended, because it
    // interrupts this function.
    while (handlers_.load() != 0) sched_yield();
    return before;
  }
  // Cancels the machine's run, if there is a machine. For handlers.
  void Cancel() {
    ++handlers_;
    if (Machine* const machine = machine_.load()) machine->Cancel();
    --handlers_;
  }

 private:
  std::atomic<Machine*> machine_{nullptr};
  std::atomic<int> handlers_{0};  // that run now, on any thread
  static_assert(std::atomic<Machine*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
};

}  // namespace rewire::tools
