// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/prefix_cache.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace rewire::serve::test {
namespace {

using Tokens = std::vector<std::int64_t>;

// Blocks of 100 bytes, each with the tokens that it stands for, from the prompt's first one on.
CacheBlocks BlocksOf(const Tokens& prompt, std::size_t first, std::size_t end) {
  CacheBlocks blocks;
  for (std::size_t i = first; i < end; ++i) {
    const auto block = std::make_shared<CacheBlock>();
    const std::size_t count = (i + 1) * kCacheBlock;
    auto* const data = reinterpret_cast<std::int64_t*>(block->memory.Allocate(count * sizeof(std::int64_t)));
    std::copy_n(prompt.data(), count, data);
    block->data = reinterpret_cast<const std::byte*>(data);
    block->bytes = 100;
    blocks.push_back(block);
  }
  return blocks;
}

// Whether each block is the prompt's.
bool AreOf(const CacheBlocks& blocks, const Tokens& prompt) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto* const tokens = reinterpret_cast<const std::int64_t*>(blocks[i]->data);
    if (!std::equal(tokens, tokens + (i + 1) * kCacheBlock, prompt.data())) return false;
  }
  return true;
}

Tokens Prompt(std::size_t size, std::int64_t first) {
  Tokens prompt(size, 1);
  prompt[0] = first;
  return prompt;
}

TEST_CASE("prefix cache: blocks are found by all tokens in front of them and their own") {
  PrefixCache cache(10000);
  const Tokens a = Prompt(64, 1);
  CHECK(cache.Find(a).empty());
  cache.Keep(a, 0, BlocksOf(a, 0, 4));
  // The last token is not among them, so that a step has one to read.
  CHECK(cache.Find(a).size() == 3);
  CHECK(cache.Find(Prompt(65, 1)).size() == 4);
  CHECK(cache.Find(Prompt(16, 1)).empty());
  CHECK(cache.Find(Prompt(17, 1)).size() == 1);
  CHECK(cache.Find(Prompt(65, 2)).empty());
  Tokens other = Prompt(80, 1);
  other[32] = 9;
  CHECK(cache.Find(other).size() == 2);
  // Blocks that are there stay, and those behind them are added.
  const CacheBlocks before = cache.Find(other);
  cache.Keep(other, 1, BlocksOf(other, 1, 5));
  const CacheBlocks after = cache.Find(Prompt(33, 1));
  REQUIRE(after.size() == 2);
  CHECK(after[1] == before[1]);
  other.push_back(3);
  CHECK(cache.Find(other).size() == 5);
  CHECK(cache.statistics().bytes == 700);
  CHECK(cache.Find({}).empty());
}

TEST_CASE(
    "prefix cache: blocks whose beginning is not kept are not kept, and a cache of no bytes keeps none") {
  const Tokens a = Prompt(64, 1);
  PrefixCache cache(10000);
  cache.Keep(a, 2, BlocksOf(a, 2, 4));
  CHECK(cache.statistics().bytes == 0);
  CHECK(cache.Find(a).empty());
  PrefixCache none(0);
  none.Keep(a, 0, BlocksOf(a, 0, 4));
  CHECK(none.statistics().bytes == 0);
  CHECK(none.statistics().prompt_tokens == 0);
}

TEST_CASE("prefix cache: threads that keep and look up at once find what belongs to their prompts") {
  PrefixCache cache(3000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      for (int turn = 0; turn < 2000; ++turn) {
        Tokens prompt(16 * (1 + random() % 8) + random() % 16 + 1);
        // Few values, so that prompts have beginnings in common.
        for (std::size_t at = 0; at < prompt.size(); at += 16)
          prompt[at] = static_cast<std::int64_t>(random() % 3);
        const CacheBlocks found = cache.Find(prompt);
        wrong += AreOf(found, prompt) ? 0 : 1;
        cache.Keep(prompt, found.size(), BlocksOf(prompt, found.size(), prompt.size() / kCacheBlock));
        wrong += cache.statistics().bytes <= 3000 ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.statistics().evicted > 0);
  CHECK(cache.statistics().reused_tokens > 0);
}

}  // namespace
}  // namespace rewire::serve::test
