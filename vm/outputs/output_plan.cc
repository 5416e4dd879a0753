// SPDX-License-Identifier: Apache-2.0
#include "vm/outputs/output_plan.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/array.h"
#include "base/sort.h"
#include "executable_format/instruction.h"
#include "vm/outputs/origins.h"

namespace rewire {

const char* CopyReasonText(CopyReason reason) {
  switch (reason) {
    case CopyReason::kNone:
      return "made in place";
    case CopyReason::kInput:
      return "it is an input, or part of one";
    case CopyReason::kConstant:
      return "it is a constant or a parameter";
    case CopyReason::kScalar:
      return "it is an integer";
    case CopyReason::kUnknown:
      return "a kernel or a closure returns it";
    case CopyReason::kReadFirst:
      return "it may be read before it is written";
    case CopyReason::kLive:
      return "an earlier tensor in the same memory may still be read when it is made";
    case CopyReason::kLeavesTwice:
      return "it is part of another output too";
    case CopyReason::kOpaque:
      return "it is part of an output of unknown structure";
    case CopyReason::kTooLarge:
      return "the function is too large to be analysed";
  }
  return "unknown";
}

namespace {

// What is known of a tensor-making origin of one function at the place where it is made.
struct SiteFacts {
  OriginSet live = 0;         // everything that may be read after it, and for a call its arguments
  OriginSet first_write = 0;  // what may be read at or after its first write: bars donation of those inputs
};

// The registers that are live after the instruction at `pc`: a part of one long list.
struct LiveAt {
  std::uint32_t pc;
  std::size_t first;
  std::size_t count;
};

class FunctionPlanner {
 public:
  FunctionPlanner(const Module& module, std::uint32_t index, OriginAnalysis* analysis, const PlanRules& rules)
      : module_(module), function_(module.functions[index]), analysis_(*analysis), rules_(rules) {}

  FunctionPlan Plan() {
    FindExits();
    GatherFacts();
    FunctionPlan plan;
    for (std::uint32_t leaf = 0; leaf < analysis_.leaf_sets().size(); ++leaf)
      plan.leaves.push_back(PlanLeaf(leaf));
    Encode(&plan);
    return plan;
  }

 private:
  OriginTable& table() { return analysis_.table(); }
  SiteFacts& Facts(OriginId id) {
    if (id >= facts_.size()) facts_.resize(id + std::size_t{1});
    return facts_[id];
  }
  static bool IsSite(const Origin& origin) {
    return origin.kind == Origin::kAlloc || origin.kind == Origin::kCallLeaf;
  }

  // By which leaves each origin leaves, and which leave through a leaf whose structure is unknown.
  void FindExits() {
    const Array<OriginSet>& sets = analysis_.leaf_sets();
    for (std::uint32_t leaf = 0; leaf < sets.size(); ++leaf) {
      const bool opaque = analysis_.IsOpaque(leaf);
      for (const OriginId id : table().Members(table().Reach(sets[leaf]))) {
        if (id >= exits_.size()) exits_.resize(id + std::size_t{1}, 0);
        ++exits_[id];
        if (opaque) leaves_opaquely_.Set(id);
      }
    }
  }

  void GatherFacts() {
    OriginFlags candidates;
    bool any = false;
    for (const OriginSet set : analysis_.leaf_sets()) {
      for (const OriginId id : table().Members(set)) {
        if (!IsSite(table().Get(id))) continue;
        candidates.Set(id);
        any = true;
      }
    }
    if (!any) return;
    // The registers that are live after each instruction that makes or first writes a candidate.
    const Liveness liveness(function_, analysis_.blocks());
    Array<LiveAt> live_after;
    Array<std::uint32_t> registers;
    for (std::uint32_t block = 0; block < analysis_.blocks().size(); ++block) {
      const std::size_t begin = live_after.size();
      liveness.VisitBackward(block, [&](std::uint32_t pc, const RegisterSet& live) {
        const Opcode opcode = OpcodeOf(function_.code[pc]);
        if (opcode != Opcode::kInvokePacked && opcode != Opcode::kInvoke && !Allocates(opcode)) return;
        const std::size_t first = registers.size();
        live.ForEach([&](std::uint32_t reg) { registers.push_back(reg); });
        live_after.push_back({pc, first, registers.size() - first});
      });
      // Blocks ascend, and now the instructions in each.
      std::reverse(live_after.begin() + static_cast<std::ptrdiff_t>(begin), live_after.end());
    }
    auto next = live_after.begin();
    analysis_.VisitStates([&](std::uint32_t pc, const OriginAnalysis::State& state) {
      while (next != live_after.end() && next->pc < pc) ++next;
      if (next == live_after.end() || next->pc != pc) return;
      GatherAt(pc, state, {registers.data() + next->first, next->count}, candidates);
    });
  }

  static bool Allocates(Opcode opcode) {
    return opcode == Opcode::kAllocTensor || opcode == Opcode::kAllocTensorReg ||
           opcode == Opcode::kShapeOf || opcode == Opcode::kDeviceCopy;
  }

  // The candidates that an instruction makes, or whose memory it writes: few instructions have any, and what
  // is live after all others need not be put together.
  Array<OriginId> CandidatesAt(std::uint32_t pc, const OriginAnalysis::State& state,
                               const OriginFlags& candidates) {
    const std::uint32_t* words = &function_.code[pc];
    Array<OriginId> found;
    const auto add = [&](OriginId id) {
      if (candidates.Has(id)) found.push_back(id);
    };
    if (OpcodeOf(*words) == Opcode::kInvokePacked) {
      const Span<const std::uint32_t> args = ReadsView(words + WordOf(Opcode::kInvokePacked, "args"));
      const Array<std::uint8_t> written = analysis_.WrittenArguments(pc, state);
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (!written[i]) continue;
        for (const OriginId id : table().Members(state.registers[args[i]])) add(id);
      }
    } else if (OpcodeOf(*words) == Opcode::kInvoke) {
      const Function& callee = module_.functions[words[WordOf(Opcode::kInvoke, "function")]];
      const auto leaves = static_cast<std::uint32_t>(Leaves(callee.result).size());
      for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) add(table().Id({Origin::kCallLeaf, pc, leaf}));
    } else {
      add(table().Id({Origin::kAlloc, pc, 0}));
    }
    return found;
  }

  void GatherAt(std::uint32_t pc, const OriginAnalysis::State& state, Span<const std::uint32_t> live,
                const OriginFlags& candidates) {
    const Array<OriginId> touched = CandidatesAt(pc, state, candidates);
    if (touched.empty()) return;
    const std::uint32_t* words = &function_.code[pc];
    const auto reach = [&](std::uint32_t except) {
      OriginSet set = 0;
      for (const std::uint32_t reg : live) {
        if (reg != except) set = table().Union(set, state.registers[reg]);
      }
      return table().Reach(set);
    };
    OriginSet read = 0;
    OriginSet donation = 0;
    switch (OpcodeOf(*words)) {
      case Opcode::kInvokePacked:
        donation = BarredAtFirstWrite(pc, state, reach(words[WordOf(Opcode::kInvokePacked, "dst")]));
        break;
      case Opcode::kInvoke:
        read = reach(words[WordOf(Opcode::kInvoke, "dst")]);
        for (const std::uint32_t arg : ReadsView(words + WordOf(Opcode::kInvoke, "args"))) {
          read = table().Union(read, table().Reach(state.registers[arg]));
        }
        donation = read;
        break;
      case Opcode::kAllocTensor:
        read = reach(words[WordOf(Opcode::kAllocTensor, "dst")]);
        break;
      case Opcode::kAllocTensorReg:
        read = reach(words[WordOf(Opcode::kAllocTensorReg, "dst")]);
        break;
      case Opcode::kShapeOf:
        read = donation = reach(words[WordOf(Opcode::kShapeOf, "dst")]);
        break;
      default:  // DeviceCopy writes what it makes, from what it reads
        read = reach(words[WordOf(Opcode::kDeviceCopy, "dst")]);
        read = table().Union(read, state.registers[words[WordOf(Opcode::kDeviceCopy, "src")]]);
        donation = read;
        break;
    }
    for (const OriginId id : touched) {
      SiteFacts& facts = Facts(id);
      facts.live = table().Union(facts.live, read);
      facts.first_write = table().Union(facts.first_write, donation);
    }
  }

  // A donated input's memory is written when the first kernel writes the tensor that takes it: nothing may
  // read the input from then on, but for that kernel itself when its import says that outputs may lie over
  // arguments.
  OriginSet BarredAtFirstWrite(std::uint32_t pc, const OriginAnalysis::State& state, OriginSet read_after) {
    const std::uint32_t* words = &function_.code[pc];
    const KernelImport& import = module_.kernels[words[WordOf(Opcode::kInvokePacked, "kernel")]];
    if ((import.flags & kKernelInPlace) != 0) return read_after;
    const Span<const std::uint32_t> args = ReadsView(words + WordOf(Opcode::kInvokePacked, "args"));
    const Array<std::uint8_t> written = analysis_.WrittenArguments(pc, state);
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!written[i]) read_after = table().Union(read_after, table().Reach(state.registers[args[i]]));
    }
    return read_after;
  }

  bool Holds(OriginSet set, OriginId id) {
    const Span<const OriginId> members = table().Members(set);
    return std::binary_search(members.begin(), members.end(), id);
  }

  CopyReason Judge(OriginId id, std::uint32_t leaf, const Array<OriginId>& rewired) {
    // First, since a tensor that is live over its own next allocation also looks unwritten there.
    if (rules_.b && Holds(Facts(id).live, id)) return CopyReason::kLive;
    if (rules_.a && analysis_.ReadsUnwritten(id)) return CopyReason::kReadFirst;
    if (analysis_.IsOpaque(leaf) || (rules_.c && leaves_opaquely_.Has(id))) return CopyReason::kOpaque;
    if (rules_.c && exits_[id] > 1) return CopyReason::kLeavesTwice;
    if (!rules_.b) return CopyReason::kNone;
    for (const OriginId other : rewired) {
      // Two leaves of one call cannot both lie in the same memory either.
      const bool same_call = table().Get(id).kind == Origin::kCallLeaf &&
                             table().Get(other).kind == Origin::kCallLeaf &&
                             table().Get(id).pc == table().Get(other).pc;
      if (same_call || Holds(Facts(id).live, other) || Holds(Facts(other).live, id)) return CopyReason::kLive;
    }
    return CopyReason::kNone;
  }

  LeafPlan PlanLeaf(std::uint32_t leaf) {
    LeafPlan plan;
    plan.may_take_input.assign(function_.inputs.size(), true);
    plan.returns_input.assign(function_.inputs.size(), false);
    const auto note = [&plan](CopyReason reason) {
      if (plan.reason == CopyReason::kNone) plan.reason = reason;
    };
    const bool is_tensor = function_.result.nodes[Leaves(function_.result)[leaf]].kind == TypeKind::kTensor;
    Array<OriginId> sites;
    for (const OriginId id : table().Members(analysis_.leaf_sets()[leaf])) {
      const Origin& origin = table().Get(id);
      switch (origin.kind) {
        case Origin::kAlloc:
        case Origin::kCallLeaf:
          sites.push_back(id);
          break;
        case Origin::kTuple:  // a leaf that is a tensor is none of the ADTs and closures around it
          if (!is_tensor) note(CopyReason::kOpaque);
          break;
        case Origin::kInput:
          note(CopyReason::kInput);
          break;
        case Origin::kConstant:
          note(CopyReason::kConstant);
          break;
        case Origin::kScalar:
          note(CopyReason::kScalar);
          break;
        case Origin::kUnknown:
          note(CopyReason::kUnknown);
          break;
      }
    }
    for (const OriginId id : table().Members(table().Reach(analysis_.leaf_sets()[leaf]))) {
      const Origin& origin = table().Get(id);
      if (origin.kind == Origin::kInput) plan.returns_input[origin.index] = true;
    }
    Sort<OriginId>(sites, [this](OriginId a, OriginId b) { return table().Get(a) < table().Get(b); });
    Array<OriginId> rewired;
    for (const OriginId id : sites) {
      const Origin origin = table().Get(id);
      OutputSite site;
      site.pc = origin.pc;
      if (origin.kind == Origin::kCallLeaf) site.callee_leaf = origin.index;
      site.reason = Judge(id, leaf, rewired);
      if (site.reason == CopyReason::kNone) {
        rewired.push_back(id);
        for (const OriginId barred : table().Members(Facts(id).first_write)) {
          const Origin& input = table().Get(barred);
          if (input.kind == Origin::kInput) plan.may_take_input[input.index] = false;
        }
      }
      note(site.reason);
      plan.sites.push_back(site);
    }
    plan.rewired = plan.reason == CopyReason::kNone && !plan.sites.empty();
    return plan;
  }

  // The plan as the interpreter looks it up.
  void Encode(FunctionPlan* plan) {
    for (std::uint32_t leaf = 0; leaf < plan->leaves.size(); ++leaf) {
      for (const OutputSite& site : plan->leaves[leaf].sites) {
        if (site.reason != CopyReason::kNone) continue;
        if (plan->sites.empty()) plan->sites.assign(function_.code.size(), FunctionPlan::kNotRewired);
        const auto value = static_cast<std::uint32_t>(leaf + 1);
        if (site.callee_leaf == kNone) {
          plan->sites[site.pc] = value;
          continue;
        }
        if (plan->sites[site.pc] == FunctionPlan::kNotRewired) {
          const std::uint32_t callee = function_.code[site.pc + WordOf(Opcode::kInvoke, "function")];
          plan->calls.emplace_back(Leaves(module_.functions[callee].result).size(),
                                   FunctionPlan::kNotRewired);
          plan->sites[site.pc] = static_cast<std::uint32_t>(plan->calls.size());
        }
        plan->calls[plan->sites[site.pc] - 1][site.callee_leaf] = value;
      }
    }
  }

  const Module& module_;
  const Function& function_;
  OriginAnalysis& analysis_;
  PlanRules rules_;
  Array<std::uint32_t> exits_;  // by origin; those that leave at all have an entry
  OriginFlags leaves_opaquely_;
  Array<SiteFacts> facts_;  // by origin
};

FunctionPlan NothingRewired(const Function& function, CopyReason reason) {
  FunctionPlan plan;
  plan.leaves.resize(Leaves(function.result).size());
  for (LeafPlan& leaf : plan.leaves) {
    leaf.reason = reason;
    leaf.may_take_input.assign(function.inputs.size(), false);
    leaf.returns_input.assign(function.inputs.size(), true);
  }
  return plan;
}

// What callers must assume of a function that was not analysed.
FunctionSummary UnknownSummary(const Function& function) {
  LeafSummary leaf;
  leaf.unknown = true;
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) leaf.inputs.push_back(i);
  return FunctionSummary(Leaves(function.result).size(), leaf);
}

// A leaf made by a call is rewired only if the callee's leaf is. Starts from what each function says by
// itself and takes back until nothing changes, so that recursion is judged by its other ways out.
void SettleCalls(const Module& module, Array<FunctionPlan>* plans) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t i = 0; i < plans->size(); ++i) {
      for (LeafPlan& leaf : (*plans)[i].leaves) {
        if (!leaf.rewired) continue;
        for (const OutputSite& site : leaf.sites) {
          if (site.callee_leaf == kNone) continue;
          const std::uint32_t callee =
              module.functions[i].code[site.pc + WordOf(Opcode::kInvoke, "function")];
          const LeafPlan& called = (*plans)[callee].leaves[site.callee_leaf];
          if (called.rewired) continue;
          leaf.rewired = false;
          leaf.reason = called.reason;
          changed = true;
          break;
        }
      }
    }
  }
}

}  // namespace

Array<FunctionPlan> PlanOutputs(const Module& module, const PlanRules& rules) {
  const auto count = static_cast<std::uint32_t>(module.functions.size());
  Array<FunctionSummary> summaries(count);
  for (std::uint32_t i = 0; i < count; ++i) summaries[i].resize(Leaves(module.functions[i].result).size());
  Array<std::unique_ptr<OriginAnalysis>> analyses(count);
  Array<std::uint8_t> analysed(count, true);
  // Summaries only grow, so this ends; with functions in call order, after two rounds.
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!analysed[i]) continue;
      analyses[i] = std::make_unique<OriginAnalysis>(module, i, summaries);
      analysed[i] = analyses[i]->Run(rules.max_state_entries);
      FunctionSummary summary = analysed[i] ? analyses[i]->Summary() : UnknownSummary(module.functions[i]);
      if (summary == summaries[i]) continue;
      summaries[i] = std::move(summary);
      changed = true;
    }
  }
  Array<FunctionPlan> plans;
  for (std::uint32_t i = 0; i < count; ++i) {
    plans.push_back(analysed[i] ? FunctionPlanner(module, i, analyses[i].get(), rules).Plan()
                                : NothingRewired(module.functions[i], CopyReason::kTooLarge));
  }
  SettleCalls(module, &plans);
  return plans;
}

}  // namespace rewire
