// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rewire/serve/core/arena.h"

namespace rewire::serve {

// The tokens of a block.
inline constexpr std::size_t kCacheBlock = 16;

// CacheBlock: what a generator's caches hold for kCacheBlock tokens of a prompt. Prompts that begin alike
// share it. Immutable once it is shared.
struct CacheBlock {
  Arena memory;
  const std::byte* data =
      nullptr;  // each tensor of state behind the other, in the order of ModelVersion::state
  std::uint64_t bytes = 0;
};

// The blocks of a prompt's first tokens.
using CacheBlocks = std::vector<std::shared_ptr<const CacheBlock>>;

}  // namespace rewire::serve
