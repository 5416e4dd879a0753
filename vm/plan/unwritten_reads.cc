// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/unwritten_reads.h"

#include "rewire/executable_format/analysis/register_set.h"

namespace rewire {

UnwrittenReads::UnwrittenReads(OriginAnalysis* analysis)
    : analysis_(*analysis), table_(analysis->table()), meter_(analysis->meter()) {}

void UnwrittenReads::Begin(Span<const std::uint32_t> number_of, std::uint32_t tensors) {
  number_of_ = number_of;
  flagged_.assign(tensors, false);
  contents_.assign(tensors, Contents::kAsBefore);
  touched_.assign(tensors, false);
  blocks_.resize(analysis_.blocks().size());
  looked_into_.assign(table_.size(), 0);
}

void UnwrittenReads::BeginBlock(std::uint32_t block) {
  EndBlock();
  block_ = block;
  ++version_;
}

void UnwrittenReads::EndBlock() {
  for (const std::uint32_t tensor : order_) {
    if (contents_[tensor] == Contents::kUnwritten) blocks_[block_].unwritten.push_back(tensor);
    if (contents_[tensor] == Contents::kWritten) blocks_[block_].written.push_back(tensor);
    contents_[tensor] = Contents::kAsBefore;
    touched_[tensor] = false;
  }
  order_.clear();
}

void UnwrittenReads::Set(std::uint32_t tensor, Contents contents) {
  if (!touched_[tensor]) order_.push_back(tensor);
  touched_[tensor] = true;
  contents_[tensor] = contents;
}

void UnwrittenReads::ReadTensor(std::uint32_t tensor) {
  if (contents_[tensor] == Contents::kUnwritten) flagged_[tensor] = true;
  if (contents_[tensor] == Contents::kAsBefore && !touched_[tensor]) {
    blocks_[block_].read.push_back(tensor);
    Set(tensor, Contents::kAsBefore);
  }
}

void UnwrittenReads::Read(OriginSet set) {
  const Span<const OriginId> members = table_.Members(set);
  meter_.Spend(1 + members.size());
  open_.append(members.begin(), members.end());
  while (!open_.empty()) {
    const OriginId id = open_.back();
    open_.pop_back();
    if (id >= looked_into_.size() || looked_into_[id] == version_) continue;
    looked_into_[id] = version_;
    if (id == kManyId) everything_read_ = true;
    if (const std::uint32_t tensor = NumberOf(id); tensor != kNone) ReadTensor(tensor);
    if (table_.Get(id).kind != Origin::kTuple) continue;
    for (const OriginSet field : table_.Fields(id)) {
      const Span<const OriginId> inside = table_.Members(field);
      meter_.Spend(1 + inside.size());
      open_.append(inside.begin(), inside.end());
    }
  }
}

void UnwrittenReads::Visit(std::uint32_t pc, const OriginAnalysis::State& state) {
  analysis_.VisitReads(pc, state, [this](OriginSet set) { Read(set); });
  const std::uint32_t* words = &analysis_.function().code[pc];
  const Effects& effects = EffectsOf(words);
  if (effects.kernel != 0) {
    const Span<const std::uint32_t> args = ListedRegisters(words);
    const Array<std::uint8_t>& written = analysis_.WrittenArguments(pc, state);
    for (std::size_t i = 0; i < args.size(); ++i) {
      // One of several that the argument may be is not surely written.
      const Span<const OriginId> members = table_.Members(state[args[i]]);
      if (!written[i] || members.size() != 1) continue;
      if (const std::uint32_t tensor = NumberOf(members[0]); tensor != kNone) Set(tensor, Contents::kWritten);
    }
  }
  const bool is_written = effects.makes == Makes::kShape || effects.makes == Makes::kCopy;
  if (!is_written && effects.makes != Makes::kTensor) return;
  const std::uint32_t tensor = NumberOf(analysis_.MadeAt(pc));
  if (tensor == kNone) return;
  Set(tensor, is_written ? Contents::kWritten : Contents::kUnwritten);
  ++version_;
}

// Tensors that are unwritten where some block ends, along all paths from there.
void UnwrittenReads::Spread() {
  Array<std::uint32_t> followed;  // tensors, by number in the sets below
  Array<std::uint32_t> place(flagged_.size(), kNone);
  for (const BlockFacts& facts : blocks_) {
    for (const std::uint32_t tensor : facts.unwritten) {
      if (place[tensor] != kNone) continue;
      place[tensor] = static_cast<std::uint32_t>(followed.size());
      followed.push_back(tensor);
    }
  }
  if (followed.empty()) return;
  const auto count = static_cast<std::uint32_t>(followed.size());
  const std::uint64_t words = RegisterSet::Words(count);
  if (!meter_.Spend(words * blocks_.size())) return;
  const auto merge = [](RegisterSet* known, const RegisterSet& more) { return known->Merge(more); };
  ForwardDataflow<RegisterSet> flow(blocks_.size());
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) flow.Reach(block, RegisterSet(count), merge);
  for (std::uint32_t block = flow.Next(); block != flow.kNowhere; block = flow.Next()) {
    const BlockFacts& facts = blocks_[block];
    if (!meter_.Spend(1 + words + facts.written.size() + facts.unwritten.size())) return;
    RegisterSet after = flow.entry(block);
    for (const std::uint32_t tensor : facts.written) {
      if (place[tensor] != kNone) after.Remove(place[tensor]);
    }
    for (const std::uint32_t tensor : facts.unwritten) after.Add(place[tensor]);
    for (const std::uint32_t successor : analysis_.blocks()[block].successors()) {
      meter_.Spend(1 + words);
      flow.Reach(successor, after, merge);
    }
  }
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    for (const std::uint32_t tensor : blocks_[block].read) {
      if (place[tensor] != kNone && flow.entry(block).Has(place[tensor])) flagged_[tensor] = true;
    }
  }
}

Array<std::uint8_t> UnwrittenReads::Finish() {
  EndBlock();
  Spread();
  if (meter_.exhausted()) return {};
  return std::move(flagged_);
}

}  // namespace rewire
