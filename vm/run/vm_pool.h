// SPDX-License-Identifier: Apache-2.0
//
// VmPool: the VMs behind Program::TryRun. Idle VMs wait here for the next call, from whichever thread.
//
// A thread puts its VM on its own shelf and finds it there again. So threads that call at the same time share
// neither a lock nor a VM's memory. A thread looks at other shelves only if its own is empty. Therefore there
// are never more VMs than calls that were going on at once, however many threads there are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "rewire/base/array.h"
#include "rewire/vm/memory/cache_line.h"
#include "rewire/vm/run/machine.h"

namespace rewire {

class VmPool {
 public:
  VmPool() = default;
  ~VmPool();
  // Threads get numbers in the order of their first call, from 0 on.
  static std::size_t NumberOfThread();
  // `thread`: the number of the calling thread. It says at which shelf the thread takes a VM and puts it
  // back.
  OwnedMachine Take(const Program& program, std::size_t thread);
  void Give(OwnedMachine vm, std::size_t thread);

 private:
  // The first threads have a shelf each. Threads after them share these shelves.
  static constexpr std::size_t kShelves = 16;
  // A shelf keeps at most this many idle VMs. More VMs exist while more calls are going on at once.
  static constexpr std::size_t kMaxIdle = 4;

  struct alignas(kCacheLine) Shelf {
    OwnedMachine Take();  // null if there is none

    // One of the idle VMs, or null. Only the thread that has the shelf puts one here; any thread may take it.
    // While no other thread comes to the shelf, this place suffices, and it needs no lock.
    std::atomic<Machine*> first{nullptr};
    std::mutex mutex;
    Array<OwnedMachine> idle;  // the others
  };

  std::array<Shelf, kShelves> shelves_;
};

}  // namespace rewire
