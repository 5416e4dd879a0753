// SPDX-License-Identifier: Apache-2.0
// What a SharedArena holds.
#pragma once

#include <atomic>
#include <cstdint>

#include "vm/memory/fixed_block.h"
#include "vm/memory/memory_account.h"
#include "vm/shared_arena.h"

namespace rewire {

// Stands at the start of its own memory; the FixedBlock follows.
struct SharedArena::Rep {
  FixedBlock* block = nullptr;
  Allocator upstream;
  std::uint64_t bytes = 0;  // taken from upstream
  std::atomic<std::uint32_t> references{1};
  std::atomic<bool> in_use{false};

  void Ref() { references.fetch_add(1, std::memory_order_relaxed); }
  void Unref();
  // An account of one VM; it keeps the arena.
  MemoryAccount* NewAccount();
};

}  // namespace rewire
