// SPDX-License-Identifier: Apache-2.0
// StaticMemory and SharedArena: where a VM's memory comes from when it is known how much that can be
// (Program::TryMemoryBound).
#pragma once

#include <cstdint>

#include "base/export.h"
#include "base/status.h"
#include "vm/allocator.h"

namespace rewire {

// A block of the caller's that one VM lives in: itself, its stack, objects, storage, workspace and results;
// nothing is taken from anywhere else from the VM's making to its end. Aligned to 128 bytes; what lies before
// such a boundary is lost. Must stay until the VM and everything that came from it have gone.
struct StaticMemory {
  void* pointer = nullptr;
  std::uint64_t size = 0;  // bytes
};

// Memory for the runs of several VMs that never run at once. Copies share; any thread. The last reference,
// which VMs hold too, gives the memory back.
//
// What a run needs is taken when it begins and has been given back when it ends; an unbound result is then
// copied into memory of the program's allocator. So an arena as large as the largest bound of its VMs
// suffices, and nobody sees who ran last. A run while another is going on fails with kBusy.
class REWIRE_API SharedArena {
 public:
  SharedArena() = default;  // none
  // kOutOfMemory, kInvalidArgument for a size of nothing.
  static Result<SharedArena> TryMake(std::uint64_t bytes, const Allocator& allocator = DefaultAllocator());
  SharedArena(const SharedArena& other);
  SharedArena(SharedArena&& other) noexcept : rep_(other.rep_) { other.rep_ = nullptr; }
  SharedArena& operator=(SharedArena other) noexcept;
  ~SharedArena();

  explicit operator bool() const { return rep_ != nullptr; }
  // The bytes that runs can use: as many as asked for.
  std::uint64_t size() const;
  bool in_use() const;

  struct Rep;
  Rep* rep() const { return rep_; }

 private:
  explicit SharedArena(Rep* rep) : rep_(rep) {}
  Rep* rep_ = nullptr;
};

}  // namespace rewire
