// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/empty_reads.h"

#include <optional>

#include "rewire/executable_format/analysis/register_set.h"
#include "rewire/executable_format/instruction.h"

namespace rewire::tvm {
namespace {

// Changes `filled`, the registers that may hold something, as the block does. Stops at its first empty read,
// which is returned.
std::optional<EmptyRead> StepThrough(const Flowgraph& graph, const Array<bool>& needed, std::uint32_t block,
                                     RegisterSet* filled) {
  for (std::uint32_t pc = graph.blocks[block].begin; pc < graph.blocks[block].end;
       pc += WordsOf(graph.code[pc])) {
    if (!needed[pc]) continue;
    std::optional<EmptyRead> found;
    ForEachRegister(&graph.code[pc], [&](std::uint32_t reg, RegisterUse use) {
      if (use == RegisterUse::kRead && !filled->Has(reg) && !found) found = EmptyRead{block, pc, reg};
    });
    if (found) return found;
    ForEachRegister(&graph.code[pc], [&](std::uint32_t reg, RegisterUse use) {
      if (use == RegisterUse::kWrite) filled->Add(reg);
      if (use == RegisterUse::kKill) filled->Remove(reg);
    });
  }
  return std::nullopt;
}

}  // namespace

Array<EmptyRead> FindEmptyReads(const Flowgraph& graph, const Array<bool>& needed, WorkMeter* meter) {
  const std::uint64_t words = RegisterSet::Words(graph.registers);
  Array<RegisterSet> filled(graph.blocks.size());  // where each block begins
  if (graph.blocks.empty() || !meter->Spend(graph.blocks.size())) return {};
  filled[0] = RegisterSet(graph.registers);
  for (std::uint32_t i = 0; i < graph.inputs; ++i) filled[0].Add(i);
  // The sets only grow, so a read that is empty for now may turn out not to be, never the other way round.
  BlockQueue queue(graph.blocks.size(), BlockQueue::Order::kFirstBlockFirst);
  queue.Push(0);
  Array<std::uint8_t> entered(graph.blocks.size());
  entered[0] = 1;
  while (!queue.empty()) {
    const std::uint32_t block = queue.Pop();
    const BasicBlock& at = graph.blocks[block];
    if (!meter->Spend(1 + words + at.end - at.begin)) return {};
    RegisterSet after = filled[block];
    if (StepThrough(graph, needed, block, &after)) continue;
    for (const std::uint32_t successor : at.successors()) {
      meter->Spend(1 + words);
      const bool first = entered[successor] == 0;
      entered[successor] = 1;
      if (first) filled[successor] = RegisterSet(graph.registers);
      if (filled[successor].Merge(after) || first) queue.Push(successor);
    }
  }
  Array<EmptyRead> reads;
  for (std::uint32_t block = 0; block < graph.blocks.size(); ++block) {
    if (entered[block] == 0) continue;
    RegisterSet after = std::move(filled[block]);
    if (const auto read = StepThrough(graph, needed, block, &after)) reads.push_back(*read);
  }
  return reads;
}

}  // namespace rewire::tvm
