// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/caches.h"
#include "rewire/compiler/shard/columns.h"
#include "rewire/compiler/shard/costs.h"
#include "rewire/compiler/shard/kernel_calls.h"
#include "rewire/compiler/shard/weight_uses.h"
#include "rewire/compiler/shard/weights.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

// Kernels by whose weights a split may begin.
bool MayStart(const Node& node) {
  return CallsOneOf(node, {names::kMatMul, names::kMatMulInteger, names::kGemm, names::kDense, names::kConv,
                           names::kEinsum, names::kBlockedMatMul, names::kGather});
}

// Sets of nodes and values.
class Sets {
 public:
  const void* Find(const void* member) {
    const void*& parent = parents_.try_emplace(member, member).first->second;
    if (parent == member) return member;
    const void* root = Find(parent);
    return parents_[member] = root;
  }
  void Unite(const void* a, const void* b) { parents_[Find(a)] = Find(b); }

 private:
  std::unordered_map<const void*, const void*> parents_;
};

// Nodes that hang together by values that are not whole.
struct Region {
  std::vector<const Node*> starts;
  double saved = 0, exchanged = 0;  // seconds
  std::uint64_t cut_bytes = 0;      // by which a rank's weights are less
};

class ShardPlanner {
 public:
  ShardPlanner(const Graph& graph, std::int64_t ranks, ShardGoal goal)
      : graph_(graph),
        ranks_(ranks),
        goal_(goal),
        caches_(graph),
        columns_(graph, ranks),
        uses_(graph, ranks) {}

  ShardPlan Make() {
    // Each round leaves one more node or input whole, splits one more input, or cuts one more table by rows.
    for (bool again = true; again;) {
      plan_ = ShardPlan();
      plan_.ranks = ranks_;
      sets_ = Sets();
      uses_ = WeightUses(graph_, ranks_);
      order_.clear();
      exchanged_.clear();
      wishes_.clear();
      for (const auto& [input, sharding] : split_inputs_) plan_.shardings[input] = sharding;
      Walk(graph_.main);
      Results();
      again = Banned() || Wished() || Tied() || Denied();
    }
    Report(graph_.main);
    return std::move(plan_);
  }

 private:
  ShardCall CallOf(const Node& node) const {
    ShardCall call{graph_, node, ranks_, {}, false, {}, {}, {}, {}};
    for (const Value* input : node.inputs) call.in.push_back(plan_.Of(input));
    call.is_weight = [this](const Value& value) { return IsWeight(graph_, value); };
    call.can_be = [this](const Value& value, const Sharding& sharding) {
      if (IsWeight(graph_, value)) {
        const std::vector<const Value*> positions = PositionsOf(value);
        return CanCutWeight(graph_, value, sharding, ranks_) &&
               std::all_of(positions.begin(), positions.end(),
                           [this](const Value* position) { return plan_.Of(position).IsWhole(); });
      }
      return !value.IsConstant() && sharding.IsPlain();
    };
    call.segments = [this](const Value& value, int axis, std::int64_t size) {
      return columns_.SegmentsOf(value, axis, size);
    };
    call.has_one_use = [this](const Value& value) { return columns_.UseCount(value) == 1; };
    call.may_start = MayStart(node) && !denied_.contains(&node);
    if (table_axes_.contains(&node)) call.table_axis = table_axes_.at(&node);
    return call;
  }

  std::optional<Rule> Decide(const Node& node) const {
    ShardCall call = CallOf(node);
    std::optional<Rule> rule = RuleOf(call);
    if (rule || !call.may_start) return rule;
    // Once its inputs are whole it may begin a split of its own.
    std::fill(call.in.begin(), call.in.end(), Sharding::Whole());
    return RuleOf(call);
  }

  void Walk(const Block& block) {
    for (const Node* node : block.nodes) {
      const std::optional<Rule> rule = Decide(*node);
      uses_.Add(*node, rule ? &*rule : nullptr);
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        if (node->inputs[i] != nullptr)
          Need(*node, node->inputs[i], rule ? rule->inputs[i] : Sharding::Whole());
      }
      for (const Block& inner : node->blocks) {
        Walk(inner);
        for (const Value* result : inner.results) Need(*node, result, Sharding::Whole());
      }
      if (!rule) continue;
      for (std::size_t i = 0; i < node->outputs.size(); ++i) {
        if (rule->outputs[i].IsWhole()) continue;
        plan_.shardings[node->outputs[i]] = rule->outputs[i];
        sets_.Unite(node, node->outputs[i]);
      }
      plan_.rules.emplace(node, *rule);
      order_.push_back(node);
    }
  }

  void Need(const Node& node, const Value* value, const Sharding& needed) {
    if (value == nullptr) return;
    const Sharding given = plan_.Of(value);
    if (given == needed) {
      if (!given.IsWhole()) sets_.Unite(&node, value);
      return;
    }
    if (!given.IsWhole()) {
      Exchange(value);
      return;
    }
    if (!IsWeight(graph_, *value)) caches_.Wish(value, needed, ranks_, &wishes_);
  }

  void Results() {
    for (const Value* result : graph_.main.results) {
      const Sharding given = plan_.Of(result);
      if (given.IsWhole()) continue;
      if (given.IsSplit() && caches_.IsSplit(result, split_inputs_)) {
        plan_.split_results.emplace(result, given);
      } else {
        Exchange(result);
      }
    }
  }

  void Exchange(const Value* value) {
    if (std::find(exchanged_.begin(), exchanged_.end(), value) == exchanged_.end())
      exchanged_.push_back(value);
  }

  // Inputs that something needs whole stay so.
  bool Banned() {
    bool any = false;
    for (const Value* value : exchanged_) {
      if (split_inputs_.erase(value) == 0) continue;
      caches_.Ban(value);
      any = true;
    }
    return any;
  }

  bool Wished() {
    bool any = false;
    for (const auto& [input, sharding] : wishes_) any = split_inputs_.emplace(input, sharding).second || any;
    return any;
  }

  // A table that is also the weights of products is cut as these need it, and split or left whole with them.
  bool Tied() {
    bool any = false;
    for (const Node* node : order_) {
      if (!CallsOneOf(*node, {names::kGather}) || !plan_.rules.at(node).starts) continue;
      for (const ConstantPart& part : uses_.By(*node)) {
        for (const WeightUses::Use& use : uses_.Of(part.constant)) {
          if (use.sharding == part.sharding) {
            sets_.Unite(node, use.node);
          } else if (use.sharding.IsPlain() && node->inputs[0]->IsConstant() &&
                     table_axes_.emplace(node, use.sharding.axis).second) {
            any = true;
          } else if (!any) {
            any = denied_.emplace(node, "other layers need other parts of its table").second;
          }
        }
      }
    }
    return any;
  }

  std::unordered_map<const void*, Region> Regions() {
    std::unordered_map<const void*, Region> regions;
    for (const Node* node : order_) {
      const Rule& rule = plan_.rules.at(node);
      Region& region = regions[sets_.Find(node)];
      if (rule.starts) region.starts.push_back(node);
      const SplitBytes bytes = SplitBytesOf(graph_, *node, &rule, ranks_);
      region.saved +=
          SecondsOf(graph_, *node, BytesReadBy(graph_, *node)) * (1 - 1.0 / static_cast<double>(ranks_));
      if (uses_.AreCutOnce(*node)) region.cut_bytes += bytes.whole - bytes.part;
      if (rule.late_term)
        region.exchanged += SecondsOfReduce(CountedBytes(graph_, *node->outputs[0]), ranks_);
    }
    for (const Value* value : exchanged_) {
      const double bytes = CountedBytes(graph_, *value);
      regions[sets_.Find(value)].exchanged +=
          plan_.Of(value).IsPartial() ? SecondsOfReduce(bytes, ranks_) : SecondsOfGather(bytes, ranks_);
    }
    return regions;
  }

  // Leaves whole what does not pay.
  bool Denied() {
    bool any = false;
    for (const auto& [root, region] : Regions()) {
      const bool pays = goal_ == ShardGoal::kMemory ? region.cut_bytes > 0 : region.saved > region.exchanged;
      if (pays) continue;
      for (const Node* node : region.starts) {
        denied_.emplace(node,
                        goal_ == ShardGoal::kMemory
                            ? "a rank would have as much of its weights"
                            : fmt::format("it saves {:.1f} us of computing and exchanges take {:.1f} us",
                                          region.saved * 1e6, region.exchanged * 1e6));
        any = true;
      }
    }
    if (any) split_inputs_.clear();
    return any;
  }

  void Report(const Block& block) {
    for (const Node* node : block.nodes) {
      for (const Block& inner : node->blocks) Report(inner);
      if (node->kind != NodeKind::kKernel || IsElementwise(graph_, *node, node->inputs.size())) continue;
      if (node->outputs.size() == 1 && IsWeight(graph_, *node->outputs[0])) continue;
      const auto found = plan_.rules.find(node);
      const Rule* rule = found == plan_.rules.end() ? nullptr : &found->second;
      const SplitBytes bytes = SplitBytesOf(graph_, *node, rule, ranks_);
      if (bytes.whole == 0) continue;
      ShardedLayer layer;
      layer.node = node->source;
      layer.weight_bytes = bytes.whole;
      layer.rank_bytes = bytes.part;
      if (bytes.part < bytes.whole) {
        layer.split = rule->form != nullptr ? rule->form : "columns";
        CountWeights(*node, bytes);
        const double operations = OperationsOf(graph_, *node);
        plan_.report.split_operations += operations;
        plan_.report.rank_operations += operations / static_cast<double>(ranks_);
      } else if (const auto why = denied_.find(node); why != denied_.end()) {
        layer.reason = why->second;
      } else if (!MayStart(*node)) {
        layer.reason = "calls of " + node->kernel + " are not split";
      } else {
        layer.reason = fmt::format("{} ranks divide no axis of its weights that its inputs leave", ranks_);
      }
      plan_.report.layers.push_back(std::move(layer));
    }
    if (&block != &graph_.main) return;
    for (const Node* node : order_) {
      if (plan_.rules.at(node).late_term) ReportExchange(*node->outputs[0], true);
    }
    for (const Value* value : exchanged_) ReportExchange(*value, plan_.Of(value).IsPartial());
    for (std::size_t i = 0; i < graph_.main.parameters.size(); ++i) {
      const Sharding sharding = plan_.Of(graph_.main.parameters[i]);
      if (sharding.IsSplit()) plan_.report.split_inputs.push_back(graph_.input_names[i]);
    }
  }

  // Counts each constant that is cut once.
  void CountWeights(const Node& node, const SplitBytes& bytes) {
    const std::vector<ConstantPart> parts = uses_.By(node);
    for (const ConstantPart& part : parts) {
      if (!part.sharding.IsSplit() || !counted_.insert(part.constant).second) continue;
      plan_.report.split_bytes += BytesOfWeight(*part.constant);
      plan_.report.rank_bytes += uses_.BytesHeld(*part.constant);
    }
    if (!parts.empty()) return;
    plan_.report.split_bytes += bytes.whole;  // packed ones, of few bits
    plan_.report.rank_bytes += bytes.part;
  }

  void ReportExchange(const Value& value, bool reduced) {
    ++(reduced ? plan_.report.all_reduces : plan_.report.all_gathers);
    plan_.report.exchanged_bytes += static_cast<std::uint64_t>(CountedBytes(graph_, value));
  }

  const Graph& graph_;
  const std::int64_t ranks_;
  const ShardGoal goal_;
  ShardCaches caches_;
  ShardColumns columns_;
  WeightUses uses_;
  ShardPlan plan_;
  Sets sets_;
  // In the order of the graph, so that all ranks decide alike.
  std::vector<const Node*> order_;       // nodes with rules
  std::vector<const Value*> exchanged_;  // values that something needs whole
  std::map<const Value*, Sharding> wishes_, split_inputs_;
  std::unordered_map<const Node*, std::string> denied_;  // and why
  std::unordered_map<const Node*, int> table_axes_;      // of tables that are split as products need it
  std::set<const Value*> counted_;
};

}  // namespace

Sharding ShardPlan::Of(const Value* value) const {
  const auto found = shardings.find(value);
  return found == shardings.end() ? Sharding::Whole() : found->second;
}

ShardPlan PlanShards(const Graph& graph, std::int64_t ranks, ShardGoal goal) {
  return ShardPlanner(graph, ranks, goal).Make();
}

}  // namespace rewire::compiler
