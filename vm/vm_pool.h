// SPDX-License-Identifier: Apache-2.0
// The VMs behind Program::TryRun: idle ones wait here for the next call, whichever thread it comes from.
//
// A thread puts its VM back on a shelf of its own and finds it there again, so that threads that call at once
// share neither a lock nor the memory of a VM. Only a thread whose shelf is empty looks at the others': as
// many VMs are made as calls have been going on at once, however many threads came by.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>

#include "base/array.h"
#include "vm/cache_line.h"
#include "vm/virtual_machine.h"

namespace rewire {

class VmPool {
 public:
  VirtualMachine Take(const Program& program);
  void Give(VirtualMachine vm);

 private:
  // Threads are numbered as they first come; more than there are shelves share them.
  static constexpr std::size_t kShelves = 16;
  // At most this many idle VMs are kept on a shelf; more exist while more calls are going on at once.
  static constexpr std::size_t kMaxIdle = 4;

  struct alignas(kCacheLine) Shelf {
    std::optional<VirtualMachine> Take();

    std::mutex mutex;
    Array<VirtualMachine> idle;
  };

  static std::size_t OwnShelf();

  std::array<Shelf, kShelves> shelves_;
};

}  // namespace rewire
