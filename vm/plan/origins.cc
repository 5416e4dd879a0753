// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/origins.h"

#include <utility>

#include "rewire/base/sort.h"

namespace rewire {

OriginAnalysis::OriginAnalysis(const Module& module, std::uint32_t function, const Callees& callees,
                               WorkMeter* meter)
    : module_(module),
      index_(function),
      function_(module.functions[function]),
      callees_(callees),
      meter_(*meter),
      result_(callees.results[function]),
      blocks_(FindBlocks(function_.code)),
      flow_(blocks_.size()),
      table_(meter),
      leaf_sets_(result_.leaves.size(), kNoOrigins),
      made_(function_.code.size(), kNoOrigins),
      scalar_(table_.Single({Origin::kScalar, 0, 0})),
      constant_(table_.Single({Origin::kConstant, 0, 0})) {
  meter_.Spend(function_.code.size());
}

bool OriginAnalysis::Run(std::size_t max_state_entries) {
  if (blocks_.size() * std::size_t{function_.register_count} > max_state_entries) return false;
  State first(function_.register_count, kNoOrigins);
  for (std::uint32_t i = 0; i < function_.inputs.size(); ++i) {
    first[i] = table_.Single({Origin::kInput, 0, i});
  }
  Reach(0, first);
  do {
    for (std::uint32_t block = flow_.Next(); block != flow_.kNowhere && !meter_.exhausted();
         block = flow_.Next()) {
      meter_.Spend(1 + function_.register_count / 8);
      State state = flow_.entry(block);
      for (std::uint32_t pc = blocks_[block].begin; pc < blocks_[block].end && !meter_.exhausted();
           pc += WordsOf(function_.code[pc])) {
        Transfer(pc, &state);
      }
      for (const std::uint32_t successor : blocks_[block].successors()) Reach(successor, state);
    }
    flow_.FollowAgain();
  } while (table_.TakeGrown() && !meter_.exhausted());
  return !meter_.exhausted();
}

void OriginAnalysis::Reach(std::uint32_t block, const State& state) {
  meter_.Spend(1 + function_.register_count / 8);
  flow_.Reach(block, state, [this](State* known, const State& more) {
    bool changed = false;
    for (std::size_t i = 0; i < known->size(); ++i) {
      if ((*known)[i] == more[i]) continue;
      const OriginSet merged = table_.Union((*known)[i], more[i]);
      changed = changed || merged != (*known)[i];
      (*known)[i] = merged;
    }
    return changed;
  });
}

OriginSet OriginAnalysis::ReachOf(Span<const std::uint32_t> registers, const State& state) {
  OriginSet set = kNoOrigins;
  for (const std::uint32_t reg : registers) set = table_.Union(set, state[reg]);
  return table_.Reach(set);
}

// A field of the value may have these origins. Inputs and unknown values stand for all that they hold.
OriginSet OriginAnalysis::FieldOf(OriginSet set, std::uint32_t index) {
  OriginSet result = kNoOrigins;
  bool holds_the_set = false;
  for (const OriginId id : table_.Members(set)) {
    switch (table_.Get(id).kind) {
      case Origin::kTuple: {
        table_.MarkRead(id);
        const Span<const OriginSet> fields = table_.Fields(id);
        if (index < fields.size()) result = table_.Union(result, fields[index]);
        break;
      }
      case Origin::kInput:
        result = table_.Union(result, table_.SetOf(id));
        break;
      case Origin::kUnknown:
        holds_the_set = true;
        break;
      case Origin::kMany:
        return kManySet;
      case Origin::kAlloc:
      case Origin::kCallLeaf:
      case Origin::kConstant:
      case Origin::kScalar:
        break;
    }
  }
  return holds_the_set ? table_.Union(result, table_.Reach(set)) : result;
}

// The tensor that the instruction makes, always the same one.
OriginSet OriginAnalysis::Allocated(std::uint32_t pc) {
  if (made_[pc] == kNoOrigins) made_[pc] = table_.SetOf(table_.Add({Origin::kAlloc, pc, 0}));
  return made_[pc];
}

OriginSet OriginAnalysis::Gathered(std::uint32_t pc, const State& state) {
  const Span<const std::uint32_t> fields = ListedRegisters(&function_.code[pc]);
  const OriginId tuple = table_.Id({Origin::kTuple, pc, 0});
  for (std::uint32_t i = 0; i < fields.size(); ++i) table_.AddField(tuple, i, state[fields[i]]);
  return table_.SetOf(tuple);
}

void OriginAnalysis::Transfer(std::uint32_t pc, State* state) {
  const std::uint32_t* words = &function_.code[pc];
  const Effects& effects = EffectsOf(words);
  meter_.Spend(WordsOf(*words));
  State& registers = *state;
  written_at_ = kNone;
  if (effects.result != 0) TransferReturn(pc, *state);
  const std::uint32_t dst = ChangedRegister(words);
  if (dst == kNone) return;
  switch (effects.makes) {
    case Makes::kNone:
      break;
    case Makes::kNothing:
      registers[dst] = kNoOrigins;
      break;
    case Makes::kSame:
    case Makes::kView:  // a view is its tensor, as far as memory goes
      registers[dst] = registers[words[effects.source]];
      break;
    case Makes::kField:
      registers[dst] = FieldOf(registers[words[effects.source]], words[WordOf(Opcode::kGetField, "index")]);
      break;
    case Makes::kTuple:
    case Makes::kClosure:
      registers[dst] = Gathered(pc, registers);
      break;
    case Makes::kTensor:
    case Makes::kShape:
    case Makes::kCopy:
      registers[dst] = Allocated(pc);
      break;
    case Makes::kCalled:
      registers[dst] = MadeOfCall(pc, registers);
      break;
    case Makes::kComputed:
      registers[dst] =
          table_.Union(ReachOf(ListedRegisters(words), registers), table_.Single({Origin::kUnknown, pc, 0}));
      break;
    case Makes::kStorage:
    case Makes::kInteger:
      registers[dst] = scalar_;
      break;
    case Makes::kLoaded:
      registers[dst] = constant_;
      break;
  }
}

// The result of an Invoke: ADT nodes of the callee's result type become tuples of this function. Leaves
// become what the callee's summary says.
OriginSet OriginAnalysis::CallNodes(std::uint32_t pc, std::uint32_t callee, Span<const std::uint32_t> args,
                                    const State& state) {
  const Type& type = module_.functions[callee].result;
  const ResultShape& shape = callees_.results[callee];
  const FunctionSummary& summary = callees_.summaries[callee];
  meter_.Spend(2 * type.nodes.size());
  Array<OriginSet> sets(type.nodes.size(), kNoOrigins);
  OriginSet all_args = kNoOrigins;  // found out by the first leaf that needs it
  auto leaf = static_cast<std::uint32_t>(summary.size());
  for (auto node = static_cast<std::uint32_t>(type.nodes.size()); node-- > 0 && !meter_.exhausted();) {
    if (type.nodes[node].kind == TypeKind::kAdt) {
      const OriginId tuple = table_.Id({Origin::kTuple, pc, node + 1});
      std::uint32_t child = node + 1;
      for (std::uint32_t i = 0; i < type.nodes[node].field_count; ++i, child = shape.ends[child]) {
        table_.AddField(tuple, i, sets[child]);
      }
      sets[node] = table_.SetOf(tuple);
      continue;
    }
    const LeafSummary& known = summary[--leaf];
    OriginSet set = kNoOrigins;
    if (known.allocates) set = table_.Union(set, table_.Single({Origin::kCallLeaf, pc, leaf}));
    if (known.constant) set = table_.Union(set, constant_);
    if (known.scalar) set = table_.Union(set, scalar_);
    if (known.unknown) set = table_.Union(set, table_.Single({Origin::kUnknown, pc, 0}));
    if (known.all_inputs) {
      if (all_args == kNoOrigins) all_args = ReachOf(args, state);
      set = table_.Union(set, all_args);
    }
    for (const std::uint32_t input : known.inputs) {
      set = table_.Union(set, table_.Reach(state[args[input]]));
    }
    sets[node] = set;
  }
  return sets[0];
}

OriginSet OriginAnalysis::MadeOfCall(std::uint32_t pc, const State& state) {
  const std::uint32_t* words = &function_.code[pc];
  const Effects& effects = EffectsOf(words);
  const Span<const std::uint32_t> args = ListedRegisters(words);
  if (effects.function != 0) return CallNodes(pc, words[effects.function], args, state);
  // A closure's callee is not known: its result may be anything that it was given, or something new.
  OriginSet set = ReachOf(args, state);
  for (std::size_t i = 0; i < effects.read_count; ++i)
    set = table_.Union(set, table_.Reach(state[words[effects.reads[i].word]]));
  return table_.Union(set, table_.Single({Origin::kUnknown, pc, 0}));
}

bool OriginAnalysis::MayBeAdt(const Origin& origin) const {
  switch (origin.kind) {
    case Origin::kTuple:
    case Origin::kUnknown:
    case Origin::kMany:
      return true;
    case Origin::kInput: {
      const TypeKind kind = function_.inputs[origin.index].type.nodes[0].kind;
      return kind != TypeKind::kTensor && kind != TypeKind::kInteger;
    }
    case Origin::kAlloc:
    case Origin::kCallLeaf:
    case Origin::kConstant:
    case Origin::kScalar:
      return false;
  }
  return true;
}

const Array<std::uint8_t>& OriginAnalysis::WrittenArguments(std::uint32_t pc, const State& state) {
  if (written_at_ == pc) return written_;
  written_at_ = pc;
  const Span<const std::uint32_t> args = ListedRegisters(&function_.code[pc]);
  const std::uint32_t outputs = function_.code[pc + WordOf(Opcode::kInvokePacked, "outputs")];
  const KernelImport& import = module_.kernels[function_.code[pc + WordOf(Opcode::kInvokePacked, "kernel")]];
  const bool flattens = (import.flags & kKernelObjects) == 0;
  Array<std::uint8_t>& written = written_;
  written.assign(args.size(), false);
  const auto may_flatten = [&](std::uint32_t reg) {
    for (const OriginId id : table_.Members(state[reg])) {
      if (MayBeAdt(table_.Get(id))) return flattens;
    }
    return false;
  };
  // Counted from the end, where flattening earlier arguments moves nothing.
  for (std::size_t i = args.size(); i-- > 0 && args.size() - i <= outputs && !may_flatten(args[i]);) {
    written[i] = true;
  }
  // Both ascend.
  const std::uint32_t* declared = import.also_written.begin();
  for (std::size_t i = 0; declared != import.also_written.end() && i < args.size(); ++i) {
    if (may_flatten(args[i])) break;
    if (*declared != i) continue;
    written[i] = true;
    ++declared;
  }
  return written;
}

void OriginAnalysis::TransferReturn(std::uint32_t pc, const State& state) {
  const Type& type = function_.result;
  meter_.Spend(2 * type.nodes.size());
  Array<OriginSet> sets(type.nodes.size(), kNoOrigins);
  sets[0] = state[function_.code[pc + EffectsOf(&function_.code[pc]).result]];
  std::uint32_t leaf = 0;
  for (std::uint32_t node = 0; node < type.nodes.size(); ++node) {
    if (type.nodes[node].kind == TypeKind::kAdt) {
      std::uint32_t child = node + 1;
      for (std::uint32_t i = 0; i < type.nodes[node].field_count; ++i, child = result_.ends[child]) {
        sets[child] = FieldOf(sets[node], i);
      }
      continue;
    }
    leaf_sets_[leaf] = table_.Union(leaf_sets_[leaf], sets[node]);
    ++leaf;
  }
}

FunctionSummary OriginAnalysis::Summary() {
  FunctionSummary summary(leaf_sets_.size());
  for (std::size_t leaf = 0; leaf < leaf_sets_.size(); ++leaf) {
    LeafSummary& known = summary[leaf];
    for (const OriginId id : table_.Members(table_.Reach(leaf_sets_[leaf]))) {
      const Origin& origin = table_.Get(id);
      switch (origin.kind) {
        case Origin::kAlloc:
        case Origin::kCallLeaf:
          known.allocates = true;
          break;
        // An ADT behind an opaque leaf: whoever gets it cannot tell its fields apart.
        case Origin::kTuple:
        case Origin::kUnknown:
          known.unknown = true;
          break;
        case Origin::kInput:
          known.inputs.push_back(origin.index);
          break;
        case Origin::kConstant:
          known.constant = true;
          break;
        case Origin::kScalar:
          known.scalar = true;
          break;
        case Origin::kMany:
          known.unknown = true;
          known.all_inputs = true;
          break;
      }
    }
    Sort(known.inputs);
  }
  return summary;
}

}  // namespace rewire
