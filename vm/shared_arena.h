// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/shared_arena.h>.
//
// StaticMemory and SharedArena: a VM's memory when its largest size is known beforehand
// (Program::TryMemoryBound).
#pragma once

#include <cstdint>

#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/vm/allocator.h"

namespace rewire {

// A block of the caller's memory that holds one whole VM: the VM itself, its stack, objects, storage,
// workspace and results. The VM allocates nothing else from its making to its end.
//
// The block should be aligned to 128 bytes; bytes before the first such boundary are not used. It must stay
// until the VM and everything that came from it are gone.
struct StaticMemory {
  void* pointer = nullptr;
  std::uint64_t size = 0;  // bytes
};

// Memory for the runs of several VMs that never run at the same time. Copies share it. Thread-safe. The
// memory is freed with the last reference; VMs hold references, too.
//
// A run takes its memory when it begins and returns all of it when it ends. A result that is not bound to the
// caller's memory is then copied into memory of the program's allocator. So an arena of the largest bound of
// its VMs suffices, whichever VM ran before. Starting a run while another one is going on fails with kBusy.
class REWIRE_API SharedArena {
 public:
  SharedArena() = default;  // no memory
  // Errors: kOutOfMemory; kInvalidArgument for zero bytes.
  static Result<SharedArena> TryMake(std::uint64_t bytes, const Allocator& allocator = DefaultAllocator());
  SharedArena(const SharedArena& other);
  SharedArena(SharedArena&& other) noexcept : rep_(other.rep_) { other.rep_ = nullptr; }
  SharedArena& operator=(SharedArena other) noexcept;
  ~SharedArena();

  explicit operator bool() const { return rep_ != nullptr; }
  // The bytes that runs can use, as requested.
  std::uint64_t size() const;
  bool in_use() const;

  struct Rep;
  Rep* rep() const { return rep_; }

 private:
  explicit SharedArena(Rep* rep) : rep_(rep) {}
  Rep* rep_ = nullptr;
};

}  // namespace rewire
