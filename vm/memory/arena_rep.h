// SPDX-License-Identifier: Apache-2.0
// The content of a SharedArena.
#pragma once

#include <atomic>
#include <cstdint>

#include "rewire/vm/memory/fixed_block.h"
#include "rewire/vm/memory/memory_account.h"
#include "rewire/vm/shared_arena.h"

namespace rewire {

// Lies at the start of its own memory. The FixedBlock follows it.
struct SharedArena::Rep {
  FixedBlock* block = nullptr;
  Allocator upstream;
  std::uint64_t bytes = 0;  // bytes taken from upstream
  std::atomic<std::uint32_t> references{1};
  std::atomic<bool> in_use{false};

  void Ref() { references.fetch_add(1, std::memory_order_relaxed); }
  void Unref();
  // Makes the account of one VM. It keeps the arena alive.
  MemoryAccount* NewAccount();
};

}  // namespace rewire
