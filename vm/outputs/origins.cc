// SPDX-License-Identifier: Apache-2.0
#include "vm/outputs/origins.h"

#include <algorithm>
#include <functional>

#include "base/array.h"
#include "base/sort.h"
#include "executable_format/instruction.h"

namespace rewire {
namespace {

Span<const std::uint32_t> ListAt(const Function& function, std::uint32_t pc, std::uint32_t word) {
  return ReadsView(&function.code[pc + word]);
}

}  // namespace

OriginAnalysis::OriginAnalysis(const Module& module, std::uint32_t function,
                               const Array<FunctionSummary>& summaries)
    : module_(module),
      function_(module.functions[function]),
      summaries_(summaries),
      blocks_(FindBlocks(function_)),
      entry_states_(blocks_.size()),
      reached_(blocks_.size(), false),
      leaf_sets_(Leaves(function_.result).size(), 0) {}

bool OriginAnalysis::Run(std::size_t max_state_entries) {
  if (blocks_.size() * std::size_t{function_.register_count} > max_state_entries) return false;
  State first;
  first.registers.assign(function_.register_count, 0);
  for (std::uint32_t i = 0; i < function_.inputs.size(); ++i) {
    first.registers[i] = table_.Single({Origin::kInput, 0, i});
  }
  do {
    changed_ = false;
    MergeInto(0, first);
    Array<std::uint32_t> work;
    for (std::uint32_t i = static_cast<std::uint32_t>(blocks_.size()); i-- > 0;) {
      if (reached_[i]) work.push_back(i);
    }
    while (!work.empty()) {
      const std::uint32_t block = work.back();
      work.pop_back();
      State state = entry_states_[block];
      for (std::uint32_t pc = blocks_[block].begin; pc < blocks_[block].end;
           pc += WordsOf(function_.code[pc])) {
        Transfer(pc, &state);
      }
      for (const std::uint32_t successor : blocks_[block].successors) {
        if (MergeInto(successor, state)) work.push_back(successor);
      }
    }
  } while (changed_);
  return true;
}

bool OriginAnalysis::MergeInto(std::uint32_t block, const State& state) {
  State& entry = entry_states_[block];
  if (!reached_[block]) {
    reached_[block] = true;
    entry = state;
    return true;
  }
  bool changed = false;
  for (std::size_t i = 0; i < entry.registers.size(); ++i) {
    const OriginSet merged = table_.Union(entry.registers[i], state.registers[i]);
    changed = changed || merged != entry.registers[i];
    entry.registers[i] = merged;
  }
  const OriginSet unwritten = table_.Union(entry.unwritten, state.unwritten);
  changed = changed || unwritten != entry.unwritten;
  entry.unwritten = unwritten;
  return changed;
}

// The contents of everything in the set are read here.
void OriginAnalysis::Read(OriginSet set, const State& state) {
  if (state.unwritten == 0) return;
  const Span<const OriginId> unwritten = table_.Members(state.unwritten);
  for (const OriginId id : table_.Members(table_.Reach(set))) {
    if (std::binary_search(unwritten.begin(), unwritten.end(), id)) reads_unwritten_.Set(id);
  }
}

OriginSet OriginAnalysis::ReachOf(Span<const std::uint32_t> registers, const State& state) {
  OriginSet set = 0;
  for (const std::uint32_t reg : registers) set = table_.Union(set, state.registers[reg]);
  return table_.Reach(set);
}

// What a field of the value may be. Inputs and unknown values stand for all that they hold.
OriginSet OriginAnalysis::FieldOf(OriginSet set, std::uint32_t index) {
  OriginSet result = 0;
  bool holds_the_set = false;
  const Span<const OriginId> members = table_.Members(set);
  for (const OriginId id : members) {
    switch (table_.Get(id).kind) {
      case Origin::kTuple:
        if (index < table_.Fields(id).size()) result = table_.Union(result, table_.Fields(id)[index]);
        break;
      case Origin::kInput:
        result = table_.Union(result, table_.Intern({id}));
        break;
      case Origin::kUnknown:
        holds_the_set = true;
        break;
      case Origin::kAlloc:
      case Origin::kCallLeaf:
      case Origin::kConstant:
      case Origin::kScalar:
        break;
    }
  }
  return holds_the_set ? table_.Union(result, table_.Reach(set)) : result;
}

void OriginAnalysis::Transfer(std::uint32_t pc, State* state) {
  const std::uint32_t* words = &function_.code[pc];
  Array<OriginSet>& registers = state->registers;
  const auto make = [&](Origin::Kind kind, std::uint32_t dst) {
    registers[dst] = table_.Single({kind, pc, 0});
  };
  const auto read = [&](std::uint32_t reg) {
    if (reg != kNone) Read(registers[reg], *state);
  };
  const auto allocate = [&](std::uint32_t dst, bool written) {
    const OriginId id = table_.Id({Origin::kAlloc, pc, 0});
    registers[dst] = table_.Intern({id});
    state->unwritten =
        written ? table_.Without(state->unwritten, id) : table_.Union(state->unwritten, registers[dst]);
  };
  const auto gather = [&](std::uint32_t dst, Span<const std::uint32_t> fields) {
    const OriginId tuple = table_.Id({Origin::kTuple, pc, 0});
    for (std::uint32_t i = 0; i < fields.size(); ++i) {
      if (table_.AddField(tuple, i, registers[fields[i]])) changed_ = true;
    }
    registers[dst] = table_.Intern({tuple});
  };
  switch (OpcodeOf(*words)) {
    case Opcode::kMove:
      registers[words[WordOf(Opcode::kMove, "dst")]] = registers[words[WordOf(Opcode::kMove, "src")]];
      break;
    case Opcode::kRet:
      TransferReturn(pc, *state);
      break;
    case Opcode::kInvoke:
    case Opcode::kInvokeClosure:
      TransferCall(pc, state);
      break;
    case Opcode::kInvokePacked:
      TransferKernel(pc, state);
      break;
    case Opcode::kAllocTensor:
      read(words[WordOf(Opcode::kAllocTensor, "offset")]);
      allocate(words[WordOf(Opcode::kAllocTensor, "dst")], false);
      break;
    case Opcode::kAllocTensorReg:
      read(words[WordOf(Opcode::kAllocTensorReg, "offset")]);
      read(words[WordOf(Opcode::kAllocTensorReg, "shape")]);
      allocate(words[WordOf(Opcode::kAllocTensorReg, "dst")], false);
      break;
    case Opcode::kAllocADT:
      gather(words[WordOf(Opcode::kAllocADT, "dst")],
             ListAt(function_, pc, WordOf(Opcode::kAllocADT, "fields")));
      break;
    case Opcode::kAllocClosure:
      gather(words[WordOf(Opcode::kAllocClosure, "dst")],
             ListAt(function_, pc, WordOf(Opcode::kAllocClosure, "captured")));
      break;
    case Opcode::kGetField:
      registers[words[WordOf(Opcode::kGetField, "dst")]] = FieldOf(
          registers[words[WordOf(Opcode::kGetField, "object")]], words[WordOf(Opcode::kGetField, "index")]);
      break;
    case Opcode::kIf:
      read(words[WordOf(Opcode::kIf, "test")]);
      read(words[WordOf(Opcode::kIf, "target")]);
      break;
    case Opcode::kLoadConst:
      make(Origin::kConstant, words[WordOf(Opcode::kLoadConst, "dst")]);
      break;
    case Opcode::kGoto:
    case Opcode::kFatal:
      break;
    case Opcode::kGetTag:
      make(Origin::kScalar, words[WordOf(Opcode::kGetTag, "dst")]);
      break;
    case Opcode::kLoadConsti:
      make(Origin::kScalar, words[WordOf(Opcode::kLoadConsti, "dst")]);
      break;
    case Opcode::kAllocStorage:
      read(words[WordOf(Opcode::kAllocStorage, "size")]);
      make(Origin::kScalar, words[WordOf(Opcode::kAllocStorage, "dst")]);
      break;
    case Opcode::kShapeOf:
      allocate(words[WordOf(Opcode::kShapeOf, "dst")], true);
      break;
    case Opcode::kReshapeTensor:
      // A view is its tensor, as far as memory goes.
      read(words[WordOf(Opcode::kReshapeTensor, "shape")]);
      registers[words[WordOf(Opcode::kReshapeTensor, "dst")]] =
          registers[words[WordOf(Opcode::kReshapeTensor, "tensor")]];
      break;
    case Opcode::kDeviceCopy:
      read(words[WordOf(Opcode::kDeviceCopy, "src")]);
      allocate(words[WordOf(Opcode::kDeviceCopy, "dst")], true);
      break;
    case Opcode::kKillRegister:
      registers[words[WordOf(Opcode::kKillRegister, "reg")]] = 0;
      break;
  }
}

// What an Invoke's result is: ADT nodes of the callee's result type become tuples of this function, leaves
// what the callee's summary says.
OriginSet OriginAnalysis::CallNode(std::uint32_t pc, const Type& type, const FunctionSummary& summary,
                                   Span<const std::uint32_t> args, const State& state) {
  Array<OriginSet> sets(type.nodes.size(), 0);
  std::uint32_t leaf = static_cast<std::uint32_t>(summary.size());
  for (std::uint32_t node = static_cast<std::uint32_t>(type.nodes.size()); node-- > 0;) {
    if (type.nodes[node].kind == TypeKind::kAdt) {
      const OriginId tuple = table_.Id({Origin::kTuple, pc, node + 1});
      std::uint32_t child = node + 1;
      for (std::uint32_t i = 0; i < type.nodes[node].field_count; ++i, child = SubtreeEnd(type, child)) {
        if (table_.AddField(tuple, i, sets[child])) changed_ = true;
      }
      sets[node] = table_.Intern({tuple});
      continue;
    }
    const LeafSummary& known = summary[--leaf];
    OriginSet set = 0;
    if (known.allocates) set = table_.Union(set, table_.Single({Origin::kCallLeaf, pc, leaf}));
    if (known.constant) set = table_.Union(set, table_.Single({Origin::kConstant, pc, 0}));
    if (known.scalar) set = table_.Union(set, table_.Single({Origin::kScalar, pc, 0}));
    if (known.unknown) set = table_.Union(set, table_.Single({Origin::kUnknown, pc, 0}));
    for (const std::uint32_t input : known.inputs) {
      set = table_.Union(set, table_.Reach(state.registers[args[input]]));
    }
    sets[node] = set;
  }
  return sets[0];
}

void OriginAnalysis::TransferCall(std::uint32_t pc, State* state) {
  const std::uint32_t* words = &function_.code[pc];
  if (OpcodeOf(*words) == Opcode::kInvoke) {
    const Span<const std::uint32_t> args = ListAt(function_, pc, WordOf(Opcode::kInvoke, "args"));
    Read(ReachOf(args, *state), *state);
    const std::uint32_t callee = words[WordOf(Opcode::kInvoke, "function")];
    state->registers[words[WordOf(Opcode::kInvoke, "dst")]] =
        CallNode(pc, module_.functions[callee].result, summaries_[callee], args, *state);
    return;
  }
  // A closure's callee is not known: its result may be anything that it was given, or something new.
  const Span<const std::uint32_t> args = ListAt(function_, pc, WordOf(Opcode::kInvokeClosure, "args"));
  OriginSet set = ReachOf(args, *state);
  set = table_.Union(set, table_.Reach(state->registers[words[WordOf(Opcode::kInvokeClosure, "closure")]]));
  Read(set, *state);
  state->registers[words[WordOf(Opcode::kInvokeClosure, "dst")]] =
      table_.Union(set, table_.Single({Origin::kUnknown, pc, 0}));
}

bool OriginAnalysis::MayBeAdt(const Origin& origin) const {
  switch (origin.kind) {
    case Origin::kTuple:
    case Origin::kUnknown:
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

Array<std::uint8_t> OriginAnalysis::WrittenArguments(std::uint32_t pc, const State& state) {
  const Span<const std::uint32_t> args = ListAt(function_, pc, WordOf(Opcode::kInvokePacked, "args"));
  const std::uint32_t outputs = function_.code[pc + WordOf(Opcode::kInvokePacked, "outputs")];
  const KernelImport& import = module_.kernels[function_.code[pc + WordOf(Opcode::kInvokePacked, "kernel")]];
  const bool flattens = (import.flags & kKernelObjects) == 0;
  Array<std::uint8_t> written(args.size(), false);
  const auto may_flatten = [&](std::uint32_t reg) {
    for (const OriginId id : table_.Members(state.registers[reg])) {
      if (MayBeAdt(table_.Get(id))) return flattens;
    }
    return false;
  };
  // Counted from the end, where flattening earlier arguments moves nothing.
  for (std::size_t i = args.size(); i-- > 0 && args.size() - i <= outputs && !may_flatten(args[i]);) {
    written[i] = true;
  }
  bool plain_before = true;
  for (std::size_t i = 0; i < args.size() && plain_before; ++i) {
    plain_before = !may_flatten(args[i]);
    if (plain_before &&
        std::find(import.also_written.begin(), import.also_written.end(), i) != import.also_written.end()) {
      written[i] = true;
    }
  }
  return written;
}

void OriginAnalysis::TransferKernel(std::uint32_t pc, State* state) {
  const std::uint32_t* words = &function_.code[pc];
  const Span<const std::uint32_t> args = ListAt(function_, pc, WordOf(Opcode::kInvokePacked, "args"));
  const Array<std::uint8_t> written = WrittenArguments(pc, *state);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!written[i]) Read(state->registers[args[i]], *state);
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Span<const OriginId> members = table_.Members(state->registers[args[i]]);
    if (written[i] && members.size() == 1) state->unwritten = table_.Without(state->unwritten, members[0]);
  }
  const std::uint32_t dst = words[WordOf(Opcode::kInvokePacked, "dst")];
  if (dst == kNone) return;
  state->registers[dst] = table_.Union(ReachOf(args, *state), table_.Single({Origin::kUnknown, pc, 0}));
}

void OriginAnalysis::TransferReturn(std::uint32_t pc, const State& state) {
  const Type& type = function_.result;
  Array<OriginSet> sets(type.nodes.size(), 0);
  sets[0] = state.registers[function_.code[pc + WordOf(Opcode::kRet, "result")]];
  std::uint32_t leaf = 0;
  for (std::uint32_t node = 0; node < type.nodes.size(); ++node) {
    if (type.nodes[node].kind == TypeKind::kAdt) {
      std::uint32_t child = node + 1;
      for (std::uint32_t i = 0; i < type.nodes[node].field_count; ++i, child = SubtreeEnd(type, child)) {
        sets[child] = FieldOf(sets[node], i);
      }
      continue;
    }
    leaf_sets_[leaf] = table_.Union(leaf_sets_[leaf], sets[node]);
    ++leaf;
  }
}

bool OriginAnalysis::IsOpaque(std::uint32_t leaf) {
  const Array<std::uint32_t> leaves = Leaves(function_.result);
  if (function_.result.nodes[leaves[leaf]].kind == TypeKind::kTensor) return false;
  for (const OriginId id : table_.Members(leaf_sets_[leaf])) {
    if (MayBeAdt(table_.Get(id))) return true;
  }
  return false;
}

FunctionSummary OriginAnalysis::Summary() {
  FunctionSummary summary(leaf_sets_.size());
  for (std::size_t leaf = 0; leaf < leaf_sets_.size(); ++leaf) {
    for (const OriginId id : table_.Members(table_.Reach(leaf_sets_[leaf]))) {
      const Origin& origin = table_.Get(id);
      switch (origin.kind) {
        case Origin::kAlloc:
        case Origin::kCallLeaf:
          summary[leaf].allocates = true;
          break;
        // An ADT behind an opaque leaf: whoever gets it cannot tell its fields apart.
        case Origin::kTuple:
        case Origin::kUnknown:
          summary[leaf].unknown = true;
          break;
        case Origin::kInput:
          summary[leaf].inputs.push_back(origin.index);
          break;
        case Origin::kConstant:
          summary[leaf].constant = true;
          break;
        case Origin::kScalar:
          summary[leaf].scalar = true;
          break;
      }
    }
    Array<std::uint32_t>& inputs = summary[leaf].inputs;
    Sort<std::uint32_t>(inputs, std::less<>());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  }
  return summary;
}

}  // namespace rewire
