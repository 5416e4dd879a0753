// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/output_plan.h"

#include <algorithm>
#include <utility>

#include "rewire/base/sort.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/module_size.h"
#include "rewire/vm/plan/call_order.h"
#include "rewire/vm/plan/function_planner.h"
#include "rewire/vm/plan/origins.h"

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
      return "the function is too large to be analyzed";
  }
  return "unknown";
}

namespace {

class ModulePlanner {
 public:
  ModulePlanner(const Module& module, const PlanRules& rules, WorkMeter* meter)
      : module_(module), rules_(rules), meter_(*meter) {
    for (const Function& function : module.functions) {
      meter_.Spend(1 + function.code.size() + 2 * function.result.nodes.size());
      results_.emplace_back(function.result);
      summaries_.emplace_back(results_.back().leaves.size());
    }
    plans_.resize(module.functions.size());
    queued_.resize(module.functions.size());
  }

  Array<FunctionPlan> Plan() {
    const CallOrder order(module_);
    for (const CallOrder::Group& group : order.groups) {
      const Span<const std::uint32_t> functions{order.functions.data() + group.begin,
                                                group.end - group.begin};
      if (group.recursive && !Settle(functions)) {
        for (const std::uint32_t function : functions) GiveUp(function);
      } else {
        for (const std::uint32_t function : functions) PlanOne(function);
      }
      // Nothing that a group calls comes after it.
      SettleCalls(functions);
    }
    return std::move(plans_);
  }

 private:
  OriginAnalysis::Callees callees() const { return {summaries_, results_}; }

  void GiveUp(std::uint32_t function) {
    summaries_[function] = UnknownSummary(results_[function]);
    plans_[function] = NothingRewired(results_[function], CopyReason::kTooLarge);
  }

  void PlanOne(std::uint32_t function) {
    OriginAnalysis analysis(module_, function, callees(), &meter_);
    if (!analysis.Run(rules_.max_state_entries)) return GiveUp(function);
    FunctionSummary summary = analysis.Summary();
    plans_[function] = PlanFunction(&analysis, rules_);
    summaries_[function] = meter_.exhausted() ? UnknownSummary(results_[function]) : std::move(summary);
  }

  // Finds the summaries of functions that call each other. All start empty, and each is computed again when a
  // callee's summary has grown. They only grow, so this ends. Returns false if some of the functions could
  // not be analyzed, because the others' summaries are then incomplete.
  bool Settle(Span<const std::uint32_t> functions) {
    struct Edge {
      std::uint32_t callee;
      std::uint32_t caller;
    };
    Array<Edge> edges;
    for (const std::uint32_t caller : functions) {
      const Array<std::uint32_t>& code = module_.functions[caller].code;
      for (std::uint32_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
        if (OpcodeOf(code[pc]) != Opcode::kInvoke) continue;
        edges.push_back({code[pc + WordOf(Opcode::kInvoke, "function")], caller});
      }
    }
    Sort(edges, [](const Edge& a, const Edge& b) {
      return a.callee != b.callee ? a.callee < b.callee : a.caller < b.caller;
    });
    // In rounds: what a function gives to its callers is looked at in the next one.
    Array<std::uint32_t> round(functions.begin(), functions.end()), next;
    for (const std::uint32_t function : round) queued_[function] = true;
    for (; !round.empty(); round.clear(), std::swap(round, next)) {
      for (const std::uint32_t function : round) {
        queued_[function] = false;
        OriginAnalysis analysis(module_, function, callees(), &meter_);
        if (!analysis.Run(rules_.max_state_entries)) return false;
        FunctionSummary summary = analysis.Summary();
        if (meter_.exhausted()) return false;
        if (summary == summaries_[function]) continue;
        summaries_[function] = std::move(summary);
        const auto first =
            std::lower_bound(edges.begin(), edges.end(), function,
                             [](const Edge& edge, std::uint32_t callee) { return edge.callee < callee; });
        for (auto edge = first; edge != edges.end() && edge->callee == function; ++edge) {
          if (queued_[edge->caller]) continue;
          queued_[edge->caller] = true;
          next.push_back(edge->caller);
        }
      }
    }
    return true;
  }

  struct Call {
    std::uint32_t callee;
    std::uint32_t callee_leaf;
    std::uint32_t caller;
    std::uint32_t leaf;

    std::pair<std::uint32_t, std::uint32_t> made_by() const { return {callee, callee_leaf}; }
  };

  // A leaf made by a call is rewired only if the callee's leaf is. This starts with what each function of the
  // group says by itself, and then removes leaves. So recursive calls are decided by the function's other
  // ways to return.
  void SettleCalls(Span<const std::uint32_t> functions) {
    Array<Call> calls;
    for (const std::uint32_t function : functions) {
      for (std::uint32_t leaf = 0; leaf < plans_[function].leaves.size(); ++leaf)
        AddCalls(function, leaf, &calls);
    }
    Sort(calls, [](const Call& a, const Call& b) { return a.made_by() < b.made_by(); });
    Array<std::pair<std::uint32_t, std::uint32_t>> copied;
    for (const Call& call : calls) {
      if (!plans_[call.callee].leaves[call.callee_leaf].rewired) copied.push_back(call.made_by());
    }
    while (!copied.empty()) {
      const auto callee = copied.back();
      copied.pop_back();
      const auto first =
          std::lower_bound(calls.begin(), calls.end(), callee,
                           [](const Call& call, const auto& key) { return call.made_by() < key; });
      for (auto call = first; call != calls.end() && call->made_by() == callee; ++call) {
        LeafPlan& leaf = plans_[call->caller].leaves[call->leaf];
        if (!leaf.rewired) continue;
        leaf.rewired = false;
        leaf.reason = plans_[callee.first].leaves[callee.second].reason;
        copied.emplace_back(call->caller, call->leaf);
      }
    }
  }

  void AddCalls(std::uint32_t function, std::uint32_t leaf, Array<Call>* calls) {
    const LeafPlan& plan = plans_[function].leaves[leaf];
    meter_.Spend(1 + plan.sites.size());
    if (!plan.rewired) return;
    for (const OutputSite& site : plan.sites) {
      if (site.callee_leaf == kNone) continue;
      const std::uint32_t callee =
          module_.functions[function].code[site.pc + WordOf(Opcode::kInvoke, "function")];
      calls->push_back({callee, site.callee_leaf, function, leaf});
    }
  }

  const Module& module_;
  const PlanRules rules_;
  WorkMeter& meter_;
  Array<ResultShape> results_;
  Array<FunctionSummary> summaries_;
  Array<FunctionPlan> plans_;
  Array<std::uint8_t> queued_;  // by function: in the queue of Settle
};

}  // namespace

Array<FunctionPlan> PlanOutputs(const Module& module, const PlanRules& rules, WorkMeter* meter) {
  return ModulePlanner(module, rules, meter).Plan();
}

Array<FunctionPlan> PlanOutputs(const Module& module) {
  WorkMeter::Budget budget;
  budget.units = DefaultWork(ModuleSize(module));
  WorkMeter meter(budget);
  return PlanOutputs(module, {}, &meter);
}

}  // namespace rewire
