// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/function_planner.h"

#include <algorithm>
#include <utility>

#include "rewire/base/sort.h"
#include "rewire/vm/plan/site_facts.h"

namespace rewire {
namespace {

class FunctionPlanner {
 public:
  FunctionPlanner(OriginAnalysis* analysis, const PlanRules& rules)
      : analysis_(*analysis),
        table_(analysis->table()),
        result_(analysis->result(analysis->index())),
        rules_(rules),
        facts_(analysis, !rules.c) {}

  FunctionPlan Plan() {
    FunctionPlan plan;
    const bool gathered = facts_.Gather();
    for (std::uint32_t leaf = 0; gathered && leaf < result_.leaves.size(); ++leaf) {
      plan.leaves.push_back(PlanLeaf(leaf));
    }
    if (gathered) Encode(&plan);
    if (analysis_.meter().exhausted()) return NothingRewired(result_, CopyReason::kTooLarge);
    return plan;
  }

 private:
  CopyReason Judge(const OutputTensor& tensor, std::uint32_t leaf,
                   const Array<const OutputTensor*>& rewired) const {
    // First, since a tensor that is live over its own next allocation also looks unwritten there.
    if (rules_.b && tensor.outlives_itself) return CopyReason::kLive;
    if (rules_.a && tensor.reads_unwritten) return CopyReason::kReadFirst;
    if (facts_.leaves()[leaf].opaque || (rules_.c && tensor.leaves_opaquely)) return CopyReason::kOpaque;
    if (rules_.c && tensor.exits > 1) return CopyReason::kLeavesTwice;
    if (tensor.among_many) return CopyReason::kTooLarge;
    if (!rules_.b) return CopyReason::kNone;
    const auto outlived_by = [](const OutputTensor& made, const OutputTensor& other) {
      return std::binary_search(made.live.begin(), made.live.end(), other.id);
    };
    for (const OutputTensor* other : rewired) {
      // Two leaves of one call cannot both lie in the same memory either.
      const bool same_call = tensor.is_call && other->is_call && tensor.pc == other->pc;
      if (same_call || outlived_by(tensor, *other) || outlived_by(*other, tensor)) return CopyReason::kLive;
    }
    return CopyReason::kNone;
  }

  LeafPlan PlanLeaf(std::uint32_t leaf) {
    LeafPlan plan;
    const LeafContents& contents = facts_.leaves()[leaf];
    plan.inputs_unknown = contents.many;
    plan.returned_inputs = contents.inputs;
    const auto note = [&plan](CopyReason reason) {
      if (plan.reason == CopyReason::kNone) plan.reason = reason;
    };
    const bool is_tensor = analysis_.function().result.nodes[result_.leaves[leaf]].kind == TypeKind::kTensor;
    const Span<const OriginId> members = table_.Members(analysis_.leaf_sets()[leaf]);
    Array<OriginId> sites;
    for (const OriginId id : members) {
      switch (table_.Get(id).kind) {
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
        case Origin::kMany:
          note(CopyReason::kTooLarge);
          break;
      }
    }
    Sort(sites, [this](OriginId a, OriginId b) { return table_.Get(a) < table_.Get(b); });
    analysis_.meter().Spend(1 + members.size() * members.size());
    Array<const OutputTensor*> rewired;
    for (const OriginId id : sites) {
      const OutputTensor& tensor = *facts_.Find(id);
      OutputSite site;
      site.pc = tensor.pc;
      if (tensor.is_call) site.callee_leaf = table_.Get(id).index;
      site.reason = Judge(tensor, leaf, rewired);
      if (site.reason == CopyReason::kNone) {
        rewired.push_back(&tensor);
        Bar(tensor, &plan);
      }
      note(site.reason);
      plan.sites.push_back(site);
    }
    plan.rewired = plan.reason == CopyReason::kNone && !plan.sites.empty();
    return plan;
  }

  void Bar(const OutputTensor& tensor, LeafPlan* plan) {
    plan->inputs_unknown = plan->inputs_unknown || tensor.all_barred;
    if (tensor.barred.empty()) return;
    const auto inputs = static_cast<std::uint32_t>(analysis_.function().inputs.size());
    analysis_.meter().Spend(RegisterSet::Words(inputs));
    if (plan->barred_inputs.empty()) plan->barred_inputs = RegisterSet(inputs);
    plan->barred_inputs.Merge(tensor.barred);
  }

  // The plan as the interpreter looks it up.
  void Encode(FunctionPlan* plan) {
    const Function& function = analysis_.function();
    std::uint32_t first = kNone, last = 0;
    for (const LeafPlan& leaf : plan->leaves) {
      for (const OutputSite& site : leaf.sites) {
        if (site.reason != CopyReason::kNone) continue;
        first = std::min(first, site.pc);
        last = std::max(last, site.pc);
      }
    }
    if (first > last) return;
    plan->first_site = first;
    plan->sites.assign(last - first + 1, FunctionPlan::kNotRewired);
    for (std::uint32_t leaf = 0; leaf < plan->leaves.size(); ++leaf) {
      for (const OutputSite& site : plan->leaves[leaf].sites) {
        if (site.reason != CopyReason::kNone) continue;
        std::uint32_t& entry = plan->sites[site.pc - first];
        const auto value = static_cast<std::uint32_t>(leaf + 1);
        if (site.callee_leaf == kNone) {
          entry = value;
          continue;
        }
        if (entry == FunctionPlan::kNotRewired) {
          const std::uint32_t callee = function.code[site.pc + WordOf(Opcode::kInvoke, "function")];
          const std::size_t leaves = analysis_.result(callee).leaves.size();
          if (!analysis_.meter().Spend(leaves)) return;
          plan->calls.emplace_back(leaves, FunctionPlan::kNotRewired);
          entry = static_cast<std::uint32_t>(plan->calls.size());
        }
        plan->calls[entry - 1][site.callee_leaf] = value;
      }
    }
  }

  OriginAnalysis& analysis_;
  OriginTable& table_;
  const ResultShape& result_;
  PlanRules rules_;
  SiteFacts facts_;
};

}  // namespace

FunctionPlan NothingRewired(const ResultShape& result, CopyReason reason) {
  FunctionPlan plan;
  plan.leaves.resize(result.leaves.size());
  for (LeafPlan& leaf : plan.leaves) {
    leaf.reason = reason;
    leaf.inputs_unknown = true;
  }
  return plan;
}

FunctionPlan PlanFunction(OriginAnalysis* analysis, const PlanRules& rules) {
  return FunctionPlanner(analysis, rules).Plan();
}

}  // namespace rewire
