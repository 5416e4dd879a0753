// SPDX-License-Identifier: Apache-2.0
//
// PrefixCache: what the caches of a generator held for the beginnings of prompts. Prompts that begin alike
// share blocks, so each block is computed and kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/serve/core/cache_block.h"
#include "rewire/serve/core/description.h"

namespace rewire::serve {

// Thread-safe.
class PrefixCache {
 public:
  // `most_bytes`: of all blocks; 0: nothing is kept.
  explicit PrefixCache(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // The blocks of the prompt's longest beginning that is kept. The last token is never among them, because a
  // step has to read one.
  CacheBlocks Find(Span<const std::int64_t> prompt);
  // Keeps blocks of a prompt, of which the first has the number `first`. Does nothing if one in front of it
  // is not kept any more. The blocks that were used longest ago go when there are too many bytes.
  void Keep(Span<const std::int64_t> prompt, std::size_t first, const CacheBlocks& blocks);

  PrefixStatistics statistics() const;

 private:
  struct Node;
  using Nodes = std::list<Node>;
  using Children = std::map<std::vector<std::int64_t>, Nodes::iterator>;  // by the tokens of their blocks
  struct Node {
    std::shared_ptr<const CacheBlock> block;
    std::vector<std::int64_t> tokens;
    Children* siblings = nullptr;  // and itself
    Children children;
  };

  static std::vector<std::int64_t> TokensOf(Span<const std::int64_t> prompt, std::size_t block);
  // With the lock. The nodes of a prompt's first blocks, at most so many.
  std::vector<Nodes::iterator> Walk(Span<const std::int64_t> prompt, std::size_t most);
  // Makes these the last to go, the first of them at the very last. So a node never goes before one behind
  // it.
  void Touch(const std::vector<Nodes::iterator>& path);

  const std::uint64_t most_bytes_;
  mutable std::mutex mutex_;
  Children first_;  // the nodes of first blocks
  Nodes nodes_;     // those that were used longest ago at the end
  PrefixStatistics statistics_;
};

}  // namespace rewire::serve
