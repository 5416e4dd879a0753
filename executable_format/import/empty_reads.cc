// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/empty_reads.h"

#include <optional>

#include "rewire/executable_format/analysis/forward_dataflow.h"
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
  if (graph.blocks.empty() || !meter->Spend(graph.blocks.size())) return {};
  RegisterSet filled(graph.registers);
  for (std::uint32_t i = 0; i < graph.inputs; ++i) filled.Add(i);
  // The sets only grow, so a read that is empty for now may turn out not to be, never the other way round.
  const auto merge = [](RegisterSet* known, const RegisterSet& more) { return known->Merge(more); };
  ForwardDataflow<RegisterSet> flow(graph.blocks.size());
  flow.Reach(0, filled, merge);
  for (std::uint32_t block = flow.Next(); block != flow.kNowhere; block = flow.Next()) {
    const BasicBlock& at = graph.blocks[block];
    if (!meter->Spend(1 + words + at.end - at.begin)) return {};
    RegisterSet after = flow.entry(block);
    if (StepThrough(graph, needed, block, &after)) continue;
    for (const std::uint32_t successor : at.successors()) {
      meter->Spend(1 + words);
      flow.Reach(successor, after, merge);
    }
  }
  Array<EmptyRead> reads;
  for (std::uint32_t block = 0; block < graph.blocks.size(); ++block) {
    if (!flow.IsReached(block)) continue;
    RegisterSet after = flow.entry(block);
    if (const auto read = StepThrough(graph, needed, block, &after)) reads.push_back(*read);
  }
  return reads;
}

}  // namespace rewire::tvm
