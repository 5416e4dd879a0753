// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/prefix_cache.h"

#include <utility>

namespace rewire::serve {

std::vector<std::int64_t> PrefixCache::TokensOf(Span<const std::int64_t> prompt, std::size_t block) {
  const std::int64_t* const tokens = prompt.data() + block * kCacheBlock;
  return {tokens, tokens + kCacheBlock};
}

std::vector<PrefixCache::Nodes::iterator> PrefixCache::Walk(Span<const std::int64_t> prompt,
                                                            std::size_t most) {
  std::vector<Nodes::iterator> path;
  const Children* children = &first_;
  while (path.size() < most) {
    const auto found = children->find(TokensOf(prompt, path.size()));
    if (found == children->end()) break;
    path.push_back(found->second);
    children = &found->second->children;
  }
  return path;
}

void PrefixCache::Touch(const std::vector<Nodes::iterator>& path) {
  for (auto node = path.rbegin(); node != path.rend(); ++node) nodes_.splice(nodes_.begin(), nodes_, *node);
}

CacheBlocks PrefixCache::Find(Span<const std::int64_t> prompt) {
  if (most_bytes_ == 0 || prompt.empty()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<Nodes::iterator> path = Walk(prompt, (prompt.size() - 1) / kCacheBlock);
  Touch(path);
  CacheBlocks blocks;
  for (const Nodes::iterator node : path) blocks.push_back(node->block);
  statistics_.prompt_tokens += prompt.size();
  statistics_.reused_tokens += path.size() * kCacheBlock;
  return blocks;
}

void PrefixCache::Keep(Span<const std::int64_t> prompt, std::size_t first, const CacheBlocks& blocks) {
  if (most_bytes_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  // Others may have kept some of them meanwhile.
  std::vector<Nodes::iterator> path = Walk(prompt, first + blocks.size());
  if (path.size() < first) return;
  while (path.size() < first + blocks.size()) {
    Children* const siblings = path.empty() ? &first_ : &path.back()->children;
    Node& node = nodes_.emplace_front();
    node.block = blocks[path.size() - first];
    node.tokens = TokensOf(prompt, path.size());
    node.siblings = siblings;
    statistics_.bytes += node.block->bytes;
    siblings->emplace(node.tokens, nodes_.begin());
    path.push_back(nodes_.begin());
  }
  Touch(path);
  while (statistics_.bytes > most_bytes_) {
    const Node& oldest = nodes_.back();
    statistics_.bytes -= oldest.block->bytes;
    ++statistics_.evicted;
    oldest.siblings->erase(oldest.tokens);
    nodes_.pop_back();
  }
}

PrefixStatistics PrefixCache::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

}  // namespace rewire::serve
