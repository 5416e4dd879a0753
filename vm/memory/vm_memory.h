// SPDX-License-Identifier: Apache-2.0
//
// VmMemory: what memory one VM may take, and from whom.
#pragma once

#include <cstdint>

#include "rewire/base/status.h"
#include "rewire/vm/memory/fixed_block.h"
#include "rewire/vm/memory/memory_account.h"
#include "rewire/vm/shared_arena.h"

namespace rewire {

struct VmMemory {
  MemoryAccount* account;  // of runs
  MemoryAccount* home;     // of what stays between runs, and of results of an arena; often the same account
  FixedBlock* block = nullptr;  // the block that `account` allocates from; null for an ordinary VM
  SharedArena arena;            // the arena that the block belongs to

  // True if the run's memory is a block of fixed size, which is given back after each run.
  bool bounded() const { return block != nullptr; }
  // True if results and inputs have memory that is not the run's: with an arena.
  bool apart() const { return account != home; }
  std::uint64_t bytes_held() const { return account->used() + (apart() ? home->used() : 0); }
  void set_limit(std::uint64_t bytes) const {
    account->set_limit(bytes);
    home->set_limit(bytes);
  }
  // The error for a request that was refused.
  [[gnu::cold]] Status NoMemory(const char* what) const;
};

}  // namespace rewire
