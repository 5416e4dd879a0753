// SPDX-License-Identifier: Apache-2.0
#include "executable_format/import/compact.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/array.h"
#include "executable_format/code_writer.h"
#include "executable_format/import/liveness.h"

namespace rewire::tvm {
namespace {

// Gives every register that the code names a number from 0 on, inputs first; how many there are.
std::uint32_t NumberDensely(Array<std::uint32_t>& code, std::size_t inputs) {
  Array<std::uint32_t> used;
  const auto collect = [&](std::uint32_t reg) { used.push_back(reg); };
  const auto for_each_instruction = [&](auto&& visit) {
    for (std::size_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) visit(&code[pc]);
  };
  for (std::uint32_t i = 0; i < inputs; ++i) used.push_back(i);
  for_each_instruction([&](std::uint32_t* instruction) {
    ForEachRead(instruction, collect);
    ForEachWrite(instruction, collect);
  });
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for_each_instruction([&](std::uint32_t* instruction) {
    ForEachOperand(instruction,
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                     if (!IsRegister(operand.kind)) return;
                     for (std::uint32_t i = 0; i < count; ++i) {
                       if (words[i] == kNone) continue;
                       const auto found = std::lower_bound(used.begin(), used.end(), words[i]);
                       code[static_cast<std::size_t>(words + i - code.data())] =
                           static_cast<std::uint32_t>(found - used.begin());
                     }
                   });
  });
  return static_cast<std::uint32_t>(used.size());
}

// Whether the instruction does nothing but write its register.
bool IsPure(Opcode opcode) {
  return opcode == Opcode::kMove || opcode == Opcode::kLoadConst || opcode == Opcode::kLoadConsti ||
         opcode == Opcode::kAllocClosure;
}

// The reachable instructions that do something.
Array<bool> FindNeeded(const CodeIndex& code, const Array<Block>& blocks) {
  Array<bool> needed(code.size());
  for (const Block& block : blocks) {
    RegisterSet live = block.live_out;
    // The frame goes at a Ret, so kills just before it are for nothing; but one of the result is an error to
    // keep.
    bool leaving = false;
    for (std::uint32_t i = block.end; i-- > block.begin;) {
      const std::uint32_t* instruction = code.at(i);
      const Opcode opcode = code.opcode(i);
      bool dead = IsPure(opcode);
      bool of_live = false;
      ForEachWrite(instruction, [&](std::uint32_t reg) {
        dead = dead && !live.Has(reg);
        of_live = live.Has(reg);
      });
      dead = dead || (leaving && opcode == Opcode::kKillRegister && !of_live);
      if (dead) continue;
      leaving = opcode == Opcode::kRet || (leaving && opcode == Opcode::kKillRegister);
      needed[i] = true;
      ForEachWrite(instruction, [&](std::uint32_t reg) { live.Remove(reg); });
      ForEachRead(instruction, [&](std::uint32_t reg) { live.Add(reg); });
    }
  }
  return needed;
}

// Kills of registers that only dropped instructions wrote.
void DropIdleKills(const CodeIndex& code, std::size_t registers, std::size_t inputs, Array<bool>& needed) {
  Array<bool> written(registers);
  std::fill_n(written.begin(), inputs, true);
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (!needed[i] || code.opcode(i) == Opcode::kKillRegister) continue;
    ForEachWrite(code.at(i), [&](std::uint32_t reg) { written[reg] = true; });
    ForEachRead(code.at(i), [&](std::uint32_t reg) { written[reg] = true; });
  }
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (!needed[i] || code.opcode(i) != Opcode::kKillRegister) continue;
    ForEachWrite(code.at(i), [&](std::uint32_t reg) { needed[i] = needed[i] && written[reg]; });
  }
}

// From the first to the last instruction between which a register may not be shared.
struct Interval {
  std::uint32_t first = kNone;
  std::uint32_t last = 0;
  void Cover(std::uint32_t i) {
    first = std::min(first, i);
    last = std::max(last, i);
  }
};

Array<Interval> FindIntervals(const CodeIndex& code, const Array<Block>& blocks, const Array<bool>& needed,
                              std::size_t registers) {
  Array<Interval> intervals(registers);
  for (const Block& block : blocks) {
    block.live_in.ForEach([&](std::uint32_t reg) { intervals[reg].Cover(block.begin); });
    block.live_out.ForEach([&](std::uint32_t reg) { intervals[reg].Cover(block.end - 1); });
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      if (!needed[i]) continue;
      ForEachRead(code.at(i), [&](std::uint32_t reg) { intervals[reg].Cover(i); });
      ForEachWrite(code.at(i), [&](std::uint32_t reg) { intervals[reg].Cover(i); });
    }
  }
  return intervals;
}

// A number for each register: those whose intervals overlap get different ones. Inputs keep theirs to
// themselves, so that their names in text mean them. Returns how many numbers there are.
std::uint32_t Share(const Array<Interval>& intervals, std::size_t inputs, Array<std::uint32_t>& number) {
  Array<std::uint32_t> order;
  for (std::uint32_t reg = static_cast<std::uint32_t>(inputs); reg < intervals.size(); ++reg) {
    if (intervals[reg].first != kNone) order.push_back(reg);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return intervals[a].first < intervals[b].first; });
  using Taken = std::pair<std::uint32_t, std::uint32_t>;  // until which instruction, which number
  std::priority_queue<Taken, Array<Taken>, std::greater<>> taken;
  std::priority_queue<std::uint32_t, Array<std::uint32_t>, std::greater<>> free;
  auto count = static_cast<std::uint32_t>(inputs);
  number.assign(intervals.size(), 0);
  std::iota(number.begin(), number.begin() + static_cast<std::ptrdiff_t>(inputs), 0u);
  for (std::uint32_t reg : order) {
    while (!taken.empty() && taken.top().first < intervals[reg].first) {
      free.push(taken.top().second);
      taken.pop();
    }
    if (free.empty()) {
      number[reg] = count++;
    } else {
      number[reg] = free.top();
      free.pop();
    }
    taken.push({intervals[reg].last, number[reg]});
  }
  return count;
}

// Writes the needed instructions with the new numbers.
Result<Array<std::uint32_t>> Rewrite(const CodeIndex& code, const Array<bool>& needed,
                                     const Array<std::uint32_t>& number) {
  CodeWriter writer;
  Array<CodeWriter::Label> labels(code.size());
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code.reachable(i) && code.starts_block(i)) labels[i] = writer.NewLabel();
  }
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code.reachable(i) && code.starts_block(i)) writer.Bind(labels[i]);
    if (!needed[i]) continue;
    std::size_t target = 0;
    writer.Begin(code.opcode(i));
    ForEachOperand(code.at(i),
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                     if (operand.kind == OperandKind::kTarget) {
                       writer.Target(labels[code.successors(i)[target++]]);
                       return;
                     }
                     if (IsList(operand.kind)) writer.Word(count);
                     for (std::uint32_t w = 0; w < count * OperandWords(operand.kind); ++w) {
                       const bool renamed = IsRegister(operand.kind) && words[w] != kNone;
                       writer.Word(renamed ? number[words[w]] : words[w]);
                     }
                   });
    writer.End();
  }
  return writer.Finish();
}

}  // namespace

Status CompactFunction(Function& function) {
  const std::size_t inputs = function.inputs.size();
  const std::uint32_t registers = NumberDensely(function.code, inputs);
  Result<CodeIndex> code = CodeIndex::Make(function.code);
  if (!code) return Forward(code);
  Result<Array<Block>> blocks = FindLiveness(*code, registers);
  if (!blocks) return Forward(blocks);
  Array<bool> needed = FindNeeded(*code, *blocks);
  DropIdleKills(*code, registers, inputs, needed);
  Array<std::uint32_t> number;
  const std::uint32_t count = Share(FindIntervals(*code, *blocks, needed, registers), inputs, number);
  Result<Array<std::uint32_t>> rewritten = Rewrite(*code, needed, number);
  if (!rewritten) return Forward(rewritten);
  function.code = std::move(*rewritten);
  function.register_count = count;
  function.notes.clear();
  return {};
}

}  // namespace rewire::tvm
