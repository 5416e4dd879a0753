// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/compact.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/message.h"
#include "rewire/executable_format/analysis/blocks.h"
#include "rewire/executable_format/analysis/liveness.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/import/empty_reads.h"
#include "rewire/executable_format/import/flowgraph.h"
#include "rewire/executable_format/import/stream.h"
#include "rewire/executable_format/instruction.h"

namespace rewire::tvm {
namespace {

constexpr std::uint64_t kMaxSetBytes = std::uint64_t{256} << 20;
// Units of work: some tenths of a second. Code that a compiler made takes few rounds over its blocks; a chain
// of jumps made for it takes a round for each block.
constexpr std::uint64_t kMaxLivenessSteps = std::uint64_t{1} << 28;

// Gives every register that the code names a number from 0 on, inputs first. Returns what they were called
// before.
Array<std::uint32_t> NumberDensely(Array<std::uint32_t>& code, std::size_t inputs) {
  Array<std::uint32_t> used;
  for (std::uint32_t i = 0; i < inputs; ++i) used.push_back(i);
  for (std::size_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
    ForEachRegister(&code[pc], [&](std::uint32_t reg, RegisterUse) { used.push_back(reg); });
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (std::size_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
    ForEachOperand(&code[pc],
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                     if (!IsRegister(operand.kind)) return;
                     for (std::uint32_t i = 0; i < count; ++i) {
                       if (words[i] == kNone) continue;
                       const auto found = std::lower_bound(used.begin(), used.end(), words[i]);
                       code[static_cast<std::size_t>(words + i - code.data())] =
                           static_cast<std::uint32_t>(found - used.begin());
                     }
                   });
  }
  return used;
}

// Whether the last instruction goes on past the end.
bool RunsOffItsEnd(Span<const std::uint32_t> code) {
  Flow last = Flow::kEnd;
  for (std::size_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) last = Info(OpcodeOf(code[pc])).flow;
  return last == Flow::kNext || last == Flow::kCall;
}

// Whether the instruction does nothing but write its register: it makes a value, and no register can hold
// what it does not take. An ADT stays, since making it takes memory that counts.
bool IsPure(Opcode opcode) {
  const Effects& effects = EffectsOf(opcode);
  for (std::size_t i = 0; i < effects.read_count; ++i) {
    if (effects.reads[i].accepts != Accepts::kAny) return false;
  }
  switch (effects.makes) {
    case Makes::kSame:
    case Makes::kClosure:
    case Makes::kInteger:
    case Makes::kLoaded:
      return true;
    case Makes::kNone:
    case Makes::kNothing:
    case Makes::kView:
    case Makes::kField:
    case Makes::kTuple:
    case Makes::kTensor:
    case Makes::kShape:
    case Makes::kCopy:
    case Makes::kCalled:
    case Makes::kComputed:
    case Makes::kStorage:
      return false;
  }
  return false;
}

// By word: whether an instruction starts there that is reached and does something.
Array<bool> FindNeeded(const Flowgraph& graph, const Liveness& liveness) {
  Array<bool> needed(graph.code.size());
  Array<std::uint32_t> instructions;
  for (std::uint32_t b = 0; b < graph.blocks.size(); ++b) {
    if (!graph.reached[b]) continue;
    const BasicBlock& block = graph.blocks[b];
    instructions.clear();
    for (std::uint32_t pc = block.begin; pc < block.end; pc += WordsOf(graph.code[pc]))
      instructions.push_back(pc);
    RegisterSet live = liveness.live_out(b);
    // The frame goes at a Ret, so kills just before it are for nothing; but one of the result is an error to
    // keep.
    bool leaving = false;
    for (std::size_t i = instructions.size(); i-- > 0;) {
      const std::uint32_t* instruction = &graph.code[instructions[i]];
      const Opcode opcode = OpcodeOf(*instruction);
      const std::uint32_t changed = ChangedRegister(instruction);
      const bool of_live = changed != kNone && live.Has(changed);
      if (IsPure(opcode) && !of_live) continue;
      if (leaving && opcode == Opcode::kKillRegister && !of_live) continue;
      leaving = opcode == Opcode::kRet || (leaving && opcode == Opcode::kKillRegister);
      needed[instructions[i]] = true;
      StepBack(instruction, &live);
    }
  }
  return needed;
}

// Kills of registers that only dropped instructions wrote.
void DropIdleKills(const Flowgraph& graph, Array<bool>& needed) {
  const Span<const std::uint32_t> code = graph.code;
  Array<bool> used(graph.registers);
  std::fill_n(used.begin(), graph.inputs, true);
  for (std::uint32_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
    if (!needed[pc] || OpcodeOf(code[pc]) == Opcode::kKillRegister) continue;
    ForEachRegister(&code[pc], [&](std::uint32_t reg, RegisterUse) { used[reg] = true; });
  }
  for (std::uint32_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
    if (!needed[pc] || OpcodeOf(code[pc]) != Opcode::kKillRegister) continue;
    needed[pc] = used[ChangedRegister(&code[pc])];
  }
}

// From the first to the last word between which a register may not be shared.
struct Lifetime {
  std::uint32_t first = kNone;
  std::uint32_t last = 0;
  void Cover(std::uint32_t pc) {
    first = std::min(first, pc);
    last = std::max(last, pc);
  }
};

Array<Lifetime> FindLifetimes(const Flowgraph& graph, const Liveness& liveness, const Array<bool>& needed) {
  Array<Lifetime> lifetimes(graph.registers);
  const auto count = static_cast<std::uint32_t>(graph.blocks.size());
  const auto none = [](std::uint32_t, const RegisterSet&) {};
  // A register is looked at in the first and in the last block that it is live in, not in all between: those
  // are blocks times registers.
  const auto cover = [&](std::uint32_t b, RegisterSet* in, RegisterSet* out) {
    if (!graph.reached[b]) return;
    const BasicBlock& block = graph.blocks[b];
    liveness.VisitBackward(b, none).ForEachUnseen(
        in, [&](std::uint32_t reg) { lifetimes[reg].Cover(block.begin); });
    liveness.live_out(b).ForEachUnseen(out, [&](std::uint32_t reg) { lifetimes[reg].Cover(block.end - 1); });
  };
  RegisterSet in(graph.registers), out(graph.registers), last_in(graph.registers), last_out(graph.registers);
  for (std::uint32_t b = 0; b < count; ++b) cover(b, &in, &out);
  for (std::uint32_t b = count; b-- > 0;) cover(b, &last_in, &last_out);
  for (std::uint32_t pc = 0; pc < graph.code.size(); pc += WordsOf(graph.code[pc])) {
    if (!needed[pc]) continue;
    ForEachRegister(&graph.code[pc], [&](std::uint32_t reg, RegisterUse) { lifetimes[reg].Cover(pc); });
  }
  return lifetimes;
}

// A number for each register: those whose lifetimes overlap get different ones. Inputs keep theirs to
// themselves, so that their names in text mean them. Returns how many numbers there are.
std::uint32_t Share(const Array<Lifetime>& lifetimes, std::uint32_t inputs, Array<std::uint32_t>& number) {
  Array<std::uint32_t> order;
  for (std::uint32_t reg = inputs; reg < lifetimes.size(); ++reg) {
    if (lifetimes[reg].first != kNone) order.push_back(reg);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return lifetimes[a].first < lifetimes[b].first; });
  using Taken = std::pair<std::uint32_t, std::uint32_t>;  // until which word, which number
  std::priority_queue<Taken, Array<Taken>, std::greater<>> taken;
  std::priority_queue<std::uint32_t, Array<std::uint32_t>, std::greater<>> free;
  std::uint32_t count = inputs;
  number.assign(lifetimes.size(), 0);
  std::iota(number.begin(), number.begin() + static_cast<std::ptrdiff_t>(inputs), 0u);
  for (std::uint32_t reg : order) {
    while (!taken.empty() && taken.top().first < lifetimes[reg].first) {
      free.push(taken.top().second);
      taken.pop();
    }
    if (free.empty()) {
      number[reg] = count++;
    } else {
      number[reg] = free.top();
      free.pop();
    }
    taken.push({lifetimes[reg].last, number[reg]});
  }
  return count;
}

// The place where a block ends early, and the string that its Fatal quotes.
struct Cut {
  std::uint32_t block, pc, note;
};

// Writes the needed instructions with the new numbers. `cuts` are in the order of the blocks.
Result<Array<std::uint32_t>> Rewrite(const Flowgraph& graph, const Array<bool>& needed,
                                     const Array<std::uint32_t>& number, Span<const Cut> cuts) {
  CodeWriter writer;
  Array<CodeWriter::Label> labels(graph.blocks.size());
  for (std::size_t b = 0; b < graph.blocks.size(); ++b) {
    if (graph.reached[b]) labels[b] = writer.NewLabel();
  }
  const Cut* cut = cuts.begin();
  for (std::size_t b = 0; b < graph.blocks.size(); ++b) {
    if (!graph.reached[b]) continue;
    const BasicBlock& block = graph.blocks[b];
    writer.Bind(labels[b]);
    for (std::uint32_t pc = block.begin; pc < block.end; pc += WordsOf(graph.code[pc])) {
      if (cut != cuts.end() && cut->block == b && cut->pc == pc) {
        writer.Fatal(cut->note);
        ++cut;
        break;
      }
      if (!needed[pc]) continue;
      std::size_t target = 0;
      writer.Begin(OpcodeOf(graph.code[pc]));
      ForEachOperand(&graph.code[pc],
                     [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                       if (operand.kind == OperandKind::kTarget) {
                         writer.Target(labels[block.successors()[target++]]);
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
  }
  return writer.Finish();
}

Status TooMany(const Flowgraph& graph, const char* what) {
  return Fail(StatusCode::kUnsupported, "{} {} blocks with {} registers are too many to analyze", what,
              graph.blocks.size(), graph.registers);
}

// The places where the reads' blocks end, with the strings that say why. `names` has the file's numbers of
// registers. A translation has as many instructions as the file, so that counting them gives the file's
// number too.
Array<Cut> CutsAt(const Array<EmptyRead>& reads, Span<const std::uint32_t> code,
                  const Array<std::uint32_t>& names, Array<std::string>* strings) {
  Array<Cut> cuts;
  std::uint32_t pc = 0;
  std::size_t instruction = 0;
  for (const EmptyRead& read : reads) {
    for (; pc < read.pc; pc += WordsOf(code[pc])) ++instruction;
    cuts.push_back({read.block, read.pc, static_cast<std::uint32_t>(strings->size())});
    strings->push_back(Format("instruction {} of TVM's code ({}) reads register {}, which holds nothing",
                              instruction, Info(OpcodeOf(code[pc])).mnemonic, names[read.reg]));
  }
  return cuts;
}

struct Analysis {
  Flowgraph graph;
  std::optional<Liveness> liveness;  // it borrows the graph's blocks
  Array<bool> needed;
};

// Borrows the code.
Result<std::unique_ptr<const Analysis>> Analyze(Span<const std::uint32_t> code, std::uint32_t registers,
                                                std::uint32_t inputs, WorkMeter* meter) {
  auto analysis = std::make_unique<Analysis>();
  Flowgraph& graph = analysis->graph;
  graph = {code, registers, inputs, FindBlocks(code), {}};
  graph.reached = BlocksReached(graph.blocks);
  // Two sets for each block: what is live at its end, and what holds something where it begins.
  if (graph.blocks.size() > kMaxSetBytes / (std::uint64_t{16} * RegisterSet::Words(registers) + 64)) {
    return Forward(TooMany(graph, "the"));
  }
  analysis->liveness.emplace(code, graph.blocks, registers, meter);
  if (meter->exhausted()) return Forward(TooMany(graph, "the jumps between"));
  analysis->needed = FindNeeded(graph, *analysis->liveness);
  return std::unique_ptr<const Analysis>(std::move(analysis));
}

}  // namespace

Status CompactFunction(Function& function, Array<std::string>* strings) {
  const auto inputs = static_cast<std::uint32_t>(function.inputs.size());
  const Array<std::uint32_t> names = NumberDensely(function.code, inputs);
  const auto registers = static_cast<std::uint32_t>(names.size());
  if (RunsOffItsEnd(function.code)) {
    return Malformed("the last instruction goes on past the end of the function");
  }
  WorkMeter meter({.stage = "importing", .units = kMaxLivenessSteps});
  Result<std::unique_ptr<const Analysis>> analysis = Analyze(function.code, registers, inputs, &meter);
  if (!analysis) return Forward(analysis);
  const Array<EmptyRead> reads = FindEmptyReads((*analysis)->graph, (*analysis)->needed, &meter);
  if (meter.exhausted()) return TooMany((*analysis)->graph, "the jumps between");
  Array<std::uint32_t> number(registers);
  if (!reads.empty()) {
    const Array<Cut> cuts = CutsAt(reads, function.code, names, strings);
    std::iota(number.begin(), number.end(), 0u);
    Result<Array<std::uint32_t>> cut = Rewrite((*analysis)->graph, (*analysis)->needed, number, cuts);
    if (!cut) return Forward(cut);
    function.code = std::move(*cut);
    analysis = Analyze(function.code, registers, inputs, &meter);
    if (!analysis) return Forward(analysis);
  }
  const Flowgraph& graph = (*analysis)->graph;
  Array<bool> needed = (*analysis)->needed;
  DropIdleKills(graph, needed);
  const std::uint32_t count = Share(FindLifetimes(graph, *(*analysis)->liveness, needed), inputs, number);
  Result<Array<std::uint32_t>> rewritten = Rewrite(graph, needed, number, {});
  if (!rewritten) return Forward(rewritten);
  function.code = std::move(*rewritten);
  function.register_count = count;
  function.notes.clear();
  return {};
}

}  // namespace rewire::tvm
