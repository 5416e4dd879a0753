// SPDX-License-Identifier: Apache-2.0
// Blocks, reachability and liveness of generated code against what every single path says.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "rewire/executable_format/analysis/blocks.h"
#include "rewire/executable_format/analysis/liveness.h"
#include "rewire/executable_format/analysis/register_set.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/instruction.h"

namespace {

using rewire::Array;
using rewire::BasicBlock;
using rewire::CodeWriter;
using rewire::Opcode;
using rewire::RegisterSet;

constexpr std::uint32_t kRegisters = 70;  // more than a word of a set

// Code of `size` instructions with jumps to any of them, backwards too, and parts that nothing reaches.
Array<std::uint32_t> RandomCode(std::uint32_t seed, std::size_t size) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto reg = [&] { return below(4) == 0 ? kRegisters - 1 - below(3) : below(5); };
  CodeWriter code;
  std::vector<CodeWriter::Label> labels;
  for (std::size_t i = 0; i < size; ++i) labels.push_back(code.NewLabel());
  for (std::size_t i = 0; i < size; ++i) {
    code.Bind(labels[i]);
    switch (i + 1 == size ? 7 : below(8)) {
      case 0:
        code.LoadConsti(1, reg());
        break;
      case 1:
        code.Move(reg(), reg());
        break;
      case 2:
        code.Kill(reg());
        break;
      case 3:
        code.InvokePacked(0, 1, below(2) == 0 ? rewire::kNone : reg(), {reg(), reg()});
        break;
      case 4:
        code.AllocADT(0, reg(), {reg()});
        break;
      case 5:
        code.If(reg(), reg(), labels[below(size)], labels[below(size)]);
        break;
      case 6:
        code.Goto(labels[below(size)]);
        break;
      case 7:
        code.Ret(reg());
        break;
    }
  }
  return *code.Finish();
}

// The places where a run may go on after the instruction at `pc`, told from the opcodes one by one.
std::vector<std::uint32_t> NextOf(const Array<std::uint32_t>& code, std::uint32_t pc) {
  const std::uint32_t* at = &code[pc];
  switch (rewire::OpcodeOf(*at)) {
    case Opcode::kRet:
      return {};
    case Opcode::kGoto:
      return {pc + at[1]};
    case Opcode::kIf:
      return {pc + at[3], pc + at[4]};
    default:
      return {pc + rewire::WordsOf(*at)};
  }
}

bool Reads(const std::uint32_t* at, std::uint32_t reg) {
  switch (rewire::OpcodeOf(*at)) {
    case Opcode::kMove:
    case Opcode::kRet:
      return at[1] == reg;
    case Opcode::kIf:
      return at[1] == reg || at[2] == reg;
    case Opcode::kInvokePacked:
      return at[5] == reg || at[6] == reg;
    case Opcode::kAllocADT:
      return at[4] == reg;
    default:
      return false;
  }
}

bool Overwrites(const std::uint32_t* at, std::uint32_t reg) {
  switch (rewire::OpcodeOf(*at)) {
    case Opcode::kKillRegister:
      return at[1] == reg;
    case Opcode::kMove:
    case Opcode::kAllocADT:
      return at[2] == reg;
    case Opcode::kLoadConsti:
    case Opcode::kInvokePacked:
      return at[3] == reg;
    default:
      return false;
  }
}

// Whether some path from `pc` on reads the register before it is overwritten.
bool IsLiveAt(const Array<std::uint32_t>& code, std::uint32_t pc, std::uint32_t reg) {
  std::vector<bool> seen(code.size());
  std::vector<std::uint32_t> open = {pc};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    if (Reads(&code[at], reg)) return true;
    if (Overwrites(&code[at], reg)) continue;
    for (const std::uint32_t next : NextOf(code, at)) open.push_back(next);
  }
  return false;
}

}  // namespace

TEST_CASE("blocks divide the code where jumps lead to and leave") {
  CodeWriter code;
  const CodeWriter::Label loop = code.NewLabel(), done = code.NewLabel();
  code.LoadConsti(0, 1);  // words 0 to 3
  code.Bind(loop);
  code.If(0, 1, done, loop);  // 4 to 8
  code.Move(0, 1);            // 9 to 11, which nothing reaches
  code.Bind(done);
  code.Ret(1);  // 12 and 13
  const Array<std::uint32_t> words = *code.Finish();
  const Array<BasicBlock> blocks = rewire::FindBlocks(words);
  REQUIRE(blocks.size() == 4);
  const std::vector<std::vector<std::uint32_t>> successors = {{1}, {3, 1}, {3}, {}};
  const std::vector<std::uint32_t> begins = {0, 4, 9, 12, 14};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    CHECK(blocks[i].begin == begins[i]);
    CHECK(blocks[i].end == begins[i + 1]);
    const rewire::Span<const std::uint32_t> next = blocks[i].successors();
    CHECK(std::vector<std::uint32_t>(next.begin(), next.end()) == successors[i]);
  }
  CHECK(rewire::BlocksReached(blocks) == Array<std::uint8_t>{1, 1, 0, 1});
  CHECK(rewire::FindBlocks({}).empty());
}

TEST_CASE("blocks that wait come in the order of the code, each once") {
  rewire::BlockQueue first(4, rewire::BlockQueue::Order::kFirstBlockFirst);
  for (const std::uint32_t block : {2u, 0u, 3u, 2u}) first.Push(block);
  CHECK(first.Pop() == 0);
  first.Push(1);
  for (const std::uint32_t block : {1u, 2u, 3u}) CHECK(first.Pop() == block);
  CHECK(first.empty());
  rewire::BlockQueue last(3, rewire::BlockQueue::Order::kLastBlockFirst);
  last.PushAll();
  for (const std::uint32_t block : {2u, 1u, 0u}) CHECK(last.Pop() == block);
  CHECK(last.empty());
}

TEST_CASE("a set of registers merges, and tells what another one has not seen") {
  RegisterSet set(kRegisters), seen(kRegisters);
  set.Add(3);
  set.Add(69);
  seen.Add(3);
  std::vector<std::uint32_t> visited;
  set.ForEachUnseen(&seen, [&](std::uint32_t reg) { visited.push_back(reg); });
  CHECK(visited == std::vector<std::uint32_t>{69});
  CHECK_FALSE(seen.Merge(set));
  set.Add(64);
  CHECK(seen.Merge(set));
  seen.Remove(3);
  visited.clear();
  seen.ForEach([&](std::uint32_t reg) { visited.push_back(reg); });
  CHECK(visited == std::vector<std::uint32_t>{64, 69});
}

TEST_CASE("a register is live where a path reads it before it is overwritten") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Array<std::uint32_t> code = RandomCode(seed, 3 + seed % 40);
    const Array<BasicBlock> blocks = rewire::FindBlocks(code);
    rewire::WorkMeter meter({});
    const rewire::Liveness liveness(code, blocks, kRegisters, &meter);
    std::size_t wrong = 0;
    for (std::uint32_t block = 0; block < blocks.size(); ++block) {
      const auto check = [&](const RegisterSet& live, const std::vector<std::uint32_t>& places) {
        for (std::uint32_t reg = 0; reg < kRegisters; ++reg) {
          const bool expected = std::any_of(places.begin(), places.end(),
                                            [&](std::uint32_t pc) { return IsLiveAt(code, pc, reg); });
          wrong += live.Has(reg) != expected;
        }
      };
      const RegisterSet before = liveness.VisitBackward(
          block, [&](std::uint32_t pc, const RegisterSet& live) { check(live, NextOf(code, pc)); });
      check(before, {blocks[block].begin});
    }
    INFO("seed " << seed);
    CHECK(wrong == 0);
  }
}
