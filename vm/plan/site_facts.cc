// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/site_facts.h"

#include <algorithm>
#include <utility>

#include "rewire/base/sort.h"

namespace rewire {
namespace {

bool IsTensor(const Origin& origin) {
  return origin.kind == Origin::kAlloc || origin.kind == Origin::kCallLeaf;
}

}  // namespace

SiteFacts::SiteFacts(OriginAnalysis* analysis, bool pairs_of_all)
    : analysis_(*analysis),
      table_(analysis->table()),
      meter_(analysis->meter()),
      pairs_of_all_(pairs_of_all),
      input_count_(static_cast<std::uint32_t>(analysis->function().inputs.size())),
      held_inputs_(input_count_),
      unwritten_(analysis) {}

bool SiteFacts::Gather() {
  FindTensors();
  FindExits();
  if (tensors_.empty() || meter_.exhausted()) return !meter_.exhausted();
  FindParents();
  const Function& function = analysis_.function();
  const Liveness liveness(function.code, analysis_.blocks(), function.register_count, &meter_);
  if (meter_.exhausted()) return false;
  held_.assign(table_.size(), 0);
  unwritten_.Begin(tensor_of_, static_cast<std::uint32_t>(tensors_.size()));
  for (std::uint32_t block = 0; block < analysis_.blocks().size(); ++block) {
    if (analysis_.IsReached(block)) WalkBlock(block, liveness);
    if (meter_.exhausted()) return false;
  }
  const Array<std::uint8_t> unwritten = unwritten_.Finish();
  if (meter_.exhausted()) return false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    OutputTensor& tensor = tensors_[i];
    tensor.reads_unwritten = unwritten[i] != 0;
    tensor.among_many = tensor.among_many || unwritten_.everything_read();
    Sort(tensor.live);
  }
  return true;
}

void SiteFacts::FindTensors() {
  const Array<OriginSet>& sets = analysis_.leaf_sets();
  tensor_of_.assign(table_.size(), kNone);
  Array<OriginId> found;
  for (const OriginSet set : sets) {
    const Span<const OriginId> members = table_.Members(set);
    meter_.Spend(1 + members.size());
    for (const OriginId id : members) {
      if (!IsTensor(table_.Get(id)) || tensor_of_[id] != kNone) continue;
      tensor_of_[id] = 0;
      found.push_back(id);
    }
  }
  Sort(found, [this](OriginId a, OriginId b) {
    const Origin &first = table_.Get(a), &second = table_.Get(b);
    return first.pc != second.pc ? first.pc < second.pc : first.index < second.index;
  });
  for (const OriginId id : found) {
    const Origin& origin = table_.Get(id);
    tensor_of_[id] = static_cast<std::uint32_t>(tensors_.size());
    OutputTensor tensor;
    tensor.id = id;
    tensor.pc = origin.pc;
    tensor.is_call = origin.kind == Origin::kCallLeaf;
    tensors_.push_back(std::move(tensor));
  }
  leaves_of_.resize(tensors_.size());
  for (std::uint32_t leaf = 0; leaf < sets.size(); ++leaf) {
    for (const OriginId id : table_.Members(sets[leaf])) {
      if (tensor_of_[id] != kNone) leaves_of_[tensor_of_[id]].push_back(leaf);
    }
  }
}

// Finds by which leaves each tensor leaves, what leaves through a leaf of unknown structure, and which inputs
// a leaf may return.
void SiteFacts::FindExits() {
  const Array<OriginSet>& sets = analysis_.leaf_sets();
  const ResultShape& shape = analysis_.result(analysis_.index());
  leaves_.resize(sets.size());
  visit_.assign(table_.size(), 0);
  Array<OriginId> open;
  bool many = false;
  for (std::uint32_t leaf = 0; leaf < sets.size() && !meter_.exhausted(); ++leaf) {
    LeafContents& contents = leaves_[leaf];
    const Span<const OriginId> members = table_.Members(sets[leaf]);
    const TypeNode& node = analysis_.function().result.nodes[shape.leaves[leaf]];
    contents.opaque = node.kind != TypeKind::kTensor && std::ranges::any_of(members, [this](OriginId id) {
                        return analysis_.MayBeAdt(table_.Get(id));
                      });
    ++search_;
    open.assign(members.begin(), members.end());
    while (!open.empty()) {
      const OriginId id = open.back();
      open.pop_back();
      if (visit_[id] == search_) continue;
      visit_[id] = search_;
      meter_.Spend(1);
      const Origin& origin = table_.Get(id);
      if (id == kManyId) contents.many = true;
      if (tensor_of_[id] != kNone) {
        ++tensors_[tensor_of_[id]].exits;
        tensors_[tensor_of_[id]].leaves_opaquely |= contents.opaque;
      }
      if (origin.kind == Origin::kInput) {
        if (contents.inputs.empty()) {
          meter_.Spend(RegisterSet::Words(input_count_));
          contents.inputs = RegisterSet(input_count_);
        }
        contents.inputs.Add(origin.index);
      }
      if (origin.kind != Origin::kTuple) continue;
      for (const OriginSet field : table_.Fields(id)) {
        const Span<const OriginId> inside = table_.Members(field);
        meter_.Spend(1 + inside.size());
        open.append(inside.begin(), inside.end());
      }
    }
    many = many || contents.many;
  }
  // Anything may leave by a leaf that may be anything.
  for (OutputTensor& tensor : tensors_) tensor.among_many = many;
}

void SiteFacts::FindParents() {
  struct Edge {
    OriginId inside;
    OriginId tuple;
  };
  Array<Edge> edges;
  input_ids_.assign(input_count_, kNone);
  const auto add = [&](OriginId tuple, OriginSet set) {
    const Span<const OriginId> members = table_.Members(set);
    meter_.Spend(1 + members.size());
    for (const OriginId id : members) {
      const Origin::Kind kind = table_.Get(id).kind;
      if (kind == Origin::kTuple || kind == Origin::kInput || id == kManyId || tensor_of_[id] != kNone)
        edges.push_back({id, tuple});
    }
  };
  for (OriginId id = 0; id < tensor_of_.size(); ++id) {
    const Origin& origin = table_.Get(id);
    if (origin.kind == Origin::kInput) input_ids_[origin.index] = id;
    if (origin.kind != Origin::kTuple) continue;
    if (table_.Contents(id) != kManySet) {
      add(id, table_.Contents(id));
    } else {
      for (const OriginSet field : table_.Fields(id)) add(id, field);
    }
  }
  parent_begin_.assign(table_.size() + std::size_t{1}, 0);
  for (const Edge& edge : edges) ++parent_begin_[edge.inside + std::size_t{1}];
  for (std::size_t i = 1; i < parent_begin_.size(); ++i) parent_begin_[i] += parent_begin_[i - 1];
  parents_.resize(edges.size());
  Array<std::uint32_t> next(parent_begin_);
  for (const Edge& edge : edges) parents_[next[edge.inside]++] = edge.tuple;

  holds_input_.assign(table_.size(), false);
  Array<OriginId> open;
  for (const OriginId id : input_ids_) {
    if (id != kNone) open.push_back(id);
  }
  open.push_back(kManyId);
  while (!open.empty()) {
    const OriginId id = open.back();
    open.pop_back();
    for (const OriginId tuple : ParentsOf(id)) {
      meter_.Spend(1);
      if (holds_input_[tuple]) continue;
      holds_input_[tuple] = true;
      open.push_back(tuple);
    }
  }
}

void SiteFacts::Count(OriginSet set) {
  const Span<const OriginId> members = table_.Members(set);
  meter_.Spend(1 + members.size());
  for (const OriginId id : members) {
    if (held_[id]++ != 0) continue;
    if (holds_input_[id]) ++held_input_tuples_;
    if (table_.Get(id).kind == Origin::kInput) held_inputs_.Add(table_.Get(id).index);
  }
}

void SiteFacts::Uncount(OriginSet set) {
  const Span<const OriginId> members = table_.Members(set);
  meter_.Spend(1 + members.size());
  for (const OriginId id : members) {
    if (--held_[id] != 0) continue;
    if (holds_input_[id]) --held_input_tuples_;
    if (table_.Get(id).kind == Origin::kInput) held_inputs_.Remove(table_.Get(id).index);
  }
}

// True if a live register holds it, directly or inside tuples.
bool SiteFacts::IsHeld(OriginId id) {
  meter_.Spend(1);
  if (held_[id] != 0) return true;
  if (ParentsOf(id).empty()) return false;
  ++search_;
  Array<OriginId> open;
  open.push_back(id);
  while (!open.empty() && !meter_.exhausted()) {
    const OriginId inside = open.back();
    open.pop_back();
    for (const OriginId tuple : ParentsOf(inside)) {
      meter_.Spend(1);
      if (visit_[tuple] == search_) continue;
      visit_[tuple] = search_;
      if (held_[tuple] != 0) return true;
      open.push_back(tuple);
    }
  }
  return false;
}

void SiteFacts::WalkBlock(std::uint32_t block, const Liveness& liveness) {
  const Function& function = analysis_.function();
  const BasicBlock& range = analysis_.blocks()[block];
  meter_.Spend(1 + function.register_count / 8 + 2 * (range.end - range.begin));
  // The registers that the instructions name, and where each one's begin, from the last instruction to the
  // first.
  Array<NamedRegister> named;
  Array<std::uint32_t> begins;
  const RegisterSet live_before = liveness.NameBackward(block, &named, &begins);
  OriginAnalysis::State state = analysis_.EntryState(block);
  RegisterSet counted = live_before;
  live_before.ForEach([&](std::uint32_t reg) { Count(state[reg]); });
  unwritten_.BeginBlock(block);
  for (std::uint32_t pc = range.begin; pc < range.end && !meter_.exhausted();
       pc += WordsOf(function.code[pc])) {
    unwritten_.Visit(pc, state);
    const std::uint32_t begin = begins.back();
    const Span<const NamedRegister> names{named.data() + begin, named.size() - begin};
    for (const NamedRegister& name : names) {
      const bool stays = name.live_after && name.use == RegisterUse::kRead;
      if (stays || !counted.Has(name.reg)) continue;
      Uncount(state[name.reg]);
      counted.Remove(name.reg);
    }
    GatherAt(pc, state);
    analysis_.Transfer(pc, &state);
    for (const NamedRegister& name : names) {
      if (!name.live_after || counted.Has(name.reg)) continue;
      Count(state[name.reg]);
      counted.Add(name.reg);
    }
    named.resize(begin);
    begins.pop_back();
  }
  if (meter_.exhausted()) return;
  counted.ForEach([&](std::uint32_t reg) { Uncount(state[reg]); });
}

Span<OutputTensor> SiteFacts::TensorsAt(std::uint32_t pc) {
  const auto before = [](const OutputTensor& tensor, std::uint32_t place) { return tensor.pc < place; };
  auto* first = std::lower_bound(tensors_.begin(), tensors_.end(), pc, before);
  auto* last = first;
  while (last != tensors_.end() && last->pc == pc) ++last;
  return {first, static_cast<std::size_t>(last - first)};
}

void SiteFacts::GatherAt(std::uint32_t pc, const OriginAnalysis::State& state) {
  const std::uint32_t* words = &analysis_.function().code[pc];
  const Effects& effects = EffectsOf(words);
  if (effects.kernel != 0) return GatherWrites(pc, state);
  const Span<OutputTensor> made = TensorsAt(pc);
  if (made.empty()) return;
  // An instruction that makes a tensor with undefined contents writes nothing yet.
  const bool writes = effects.makes != Makes::kTensor;
  // The instruction's own operands count as live while it writes its result.
  Array<std::uint32_t> read;
  if (writes) ForEachContentsRead(words, [&](std::uint32_t reg) { read.push_back(reg); });
  for (const std::uint32_t reg : read) Count(state[reg]);
  for (OutputTensor& tensor : made) {
    NoteLive(&tensor);
    if (writes) NoteBarred(&tensor);
  }
  for (const std::uint32_t reg : read) Uncount(state[reg]);
}

// The memory of a donated input is written when the first kernel writes the tensor that takes it. Nothing may
// read the input from then on. The only exception is that kernel itself, if its import says that outputs may
// lie over arguments.
void SiteFacts::GatherWrites(std::uint32_t pc, const OriginAnalysis::State& state) {
  const std::uint32_t* words = &analysis_.function().code[pc];
  const Span<const std::uint32_t> args = ListedRegisters(words);
  const Array<std::uint8_t>& written = analysis_.WrittenArguments(pc, state);
  Array<std::uint32_t> touched;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!written[i]) continue;
    for (const OriginId id : table_.Members(state[args[i]])) {
      if (tensor_of_[id] != kNone) touched.push_back(tensor_of_[id]);
    }
  }
  if (touched.empty()) return;
  const KernelImport& import = analysis_.module().kernels[words[EffectsOf(words).kernel]];
  const bool in_place = (import.flags & kKernelInPlace) != 0;
  const auto each_read = [&](void (SiteFacts::*count)(OriginSet)) {
    for (std::size_t i = 0; i < args.size() && !in_place; ++i) {
      if (!written[i]) (this->*count)(state[args[i]]);
    }
  };
  each_read(&SiteFacts::Count);
  for (const std::uint32_t tensor : touched) NoteBarred(&tensors_[tensor]);
  each_read(&SiteFacts::Uncount);
}

void SiteFacts::NoteLive(OutputTensor* tensor) {
  tensor->outlives_itself = tensor->outlives_itself || IsHeld(tensor->id);
  tensor->among_many = tensor->among_many || IsHeld(kManyId);
  if (tensor->exits > 1 && !pairs_of_all_) return;
  for (const std::uint32_t leaf : leaves_of_[tensor_of_[tensor->id]]) {
    for (const OriginId id : table_.Members(analysis_.leaf_sets()[leaf])) {
      if (id != tensor->id && tensor_of_[id] != kNone && IsHeld(id)) tensor->live.push_back(id);
    }
  }
}

void SiteFacts::NoteBarred(OutputTensor* tensor) {
  if (input_count_ == 0 || tensor->all_barred) return;
  if (IsHeld(kManyId)) {
    tensor->all_barred = true;
    return;
  }
  meter_.Spend(RegisterSet::Words(input_count_));
  if (tensor->barred.empty()) tensor->barred = RegisterSet(input_count_);
  tensor->barred.Merge(held_inputs_);
  if (held_input_tuples_ == 0) return;
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    if (input_ids_[i] == kNone || tensor->barred.Has(i) || ParentsOf(input_ids_[i]).empty()) continue;
    if (IsHeld(input_ids_[i])) tensor->barred.Add(i);
  }
}

}  // namespace rewire
