// SPDX-License-Identifier: Apache-2.0
//
// Products. Each axis of an operand has a label, and so has each axis of the result: an axis with a label
// that the result lacks is summed over. One rule then holds for all of them.
#include <algorithm>
#include <string>
#include <string_view>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"

namespace rewire::compiler {
namespace {

// The letters of the operands and of the result, as in an Einstein sum. An axis that no rank may split is
// '.'.
struct Labels {
  std::vector<std::string> inputs;
  std::string output;
  std::optional<std::size_t> term;  // the input that is added to the products
  int term_axis = -1;               // the result's axis along which it lies
};

std::string Batch(int rank) {
  std::string labels;
  for (int i = rank - 3; i >= 0; --i) labels += static_cast<char>('A' + i);
  return labels;
}

std::optional<Labels> LabelsOf(const ShardCall& call) {
  const Node& node = call.node;
  if (node.kind != NodeKind::kKernel) return std::nullopt;
  Labels labels;
  const auto rank = [&](std::size_t i) { return call.rank(i); };
  if (node.kernel == names::kMatMul || node.kernel == names::kMatMulInteger) {
    if (rank(0) < 2 || rank(1) < 2) return std::nullopt;
    labels.inputs = {Batch(rank(0)) + "mk", Batch(rank(1)) + "kn"};
    labels.output = Batch(std::max(rank(0), rank(1))) + "mn";
    // Zeros of rows and of columns.
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
      const auto own = static_cast<std::size_t>(rank(i));
      labels.inputs.push_back(own == 1 ? (i == 2 ? "m" : "n") : std::string(own, '.'));
    }
    return labels;
  }
  if (node.kernel == names::kGemm) {
    labels.inputs = {IntAttribute(node, "transA", 0) != 0 ? "km" : "mk",
                     IntAttribute(node, "transB", 0) != 0 ? "nk" : "kn"};
    labels.output = "mn";
    if (call.Has(2)) labels.term = 2;
    return labels;
  }
  if (node.kernel == names::kDense) {
    if (rank(0) < 2) return std::nullopt;
    labels.inputs = {Batch(rank(0)) + "mk", IntAttribute(node, "transpose_w", 1) != 0 ? "nk" : "kn"};
    labels.output = Batch(rank(0)) + "mn";
    if (call.Has(2)) labels.term = 2;
    return labels;
  }
  if (node.kernel == names::kConv && IntAttribute(node, "group", 1) == 1) {
    const std::string window(static_cast<std::size_t>(rank(0) - 2), '.');
    labels.inputs = {"Ak" + window, "nk" + window};
    labels.output = "An" + window;
    if (call.Has(2)) labels.term = 2;
    labels.term_axis = 1;
    return labels;
  }
  if (node.kernel == names::kEinsum) {
    const Attribute* given = FindAttribute(node, "equation");
    contract::EinsumEquation equation;
    const auto refuse = [](const auto&...) { return Fail(StatusCode::kInvalidFile, "no equation"); };
    if (given == nullptr || !equation.Parse(std::get<std::string>(given->value), refuse)) return std::nullopt;
    labels.output = equation.result;
    labels.inputs = equation.operands;
    if (labels.inputs.size() != node.inputs.size() || equation.HasEllipsis(equation.result))
      return std::nullopt;
    for (std::size_t i = 0; i < labels.inputs.size(); ++i) {
      if (equation.HasEllipsis(labels.inputs[i])) return std::nullopt;
      std::string sorted = labels.inputs[i];
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
      if (static_cast<int>(labels.inputs[i].size()) != rank(i)) return std::nullopt;
    }
    return labels;
  }
  return std::nullopt;
}

// The rule where the axes with this label are split as `split` says.
std::optional<Rule> SplitBy(const ShardCall& call, const Labels& labels, char label, const Sharding& split) {
  Rule rule = call.Start();
  for (std::size_t i = 0; i < labels.inputs.size(); ++i) {
    const std::size_t axis = labels.inputs[i].find(label);
    if (label == '.' || axis == std::string::npos || call.dims(i)[axis].Is(1)) {
      if (!call.in[i].IsWhole()) return std::nullopt;
      continue;
    }
    rule.inputs[i] = split.Along(static_cast<int>(axis));
    if (!call.Fits(i, rule.inputs[i])) return std::nullopt;
  }
  const std::size_t result = labels.output.find(label);
  if (result == std::string::npos) {
    rule.form = "rows";
    if (labels.term) {
      rule.late_term = labels.term;
      rule.late_axis = labels.term_axis;
      if (!call.in[*labels.term].IsWhole()) return std::nullopt;
    } else {
      rule.outputs[0] = Sharding::Partial();
    }
    return rule;
  }
  rule.outputs[0] = split.Along(static_cast<int>(result));
  rule.form = label >= 'A' && label <= 'Z' ? "groups" : "columns";
  if (!labels.term) return rule;
  // The term broadcasts to the result, but for a convolution's, which lies along the channels.
  const int rank = static_cast<int>(labels.output.size());
  const auto of_result = static_cast<int>(result);
  const int own =
      labels.term_axis >= 0 ? of_result - labels.term_axis : of_result - (rank - call.rank(*labels.term));
  if (own < 0 || own >= call.rank(*labels.term) ||
      call.dims(*labels.term)[static_cast<std::size_t>(own)].Is(1)) {
    if (!call.in[*labels.term].IsWhole()) return std::nullopt;
    return rule;
  }
  rule.inputs[*labels.term] = split.Along(own);
  if (!call.Fits(*labels.term, rule.inputs[*labels.term])) return std::nullopt;
  return rule;
}

// The rule that splits what is whole along axis `axis` of the weights `input`.
std::optional<Rule> StartAt(const ShardCall& call, const Labels& labels, std::size_t input, std::size_t axis,
                            std::vector<std::int64_t> segments) {
  std::optional<Rule> rule = SplitBy(call, labels, labels.inputs[input][axis],
                                     Sharding::Split(static_cast<int>(axis), 1, std::move(segments)));
  if (rule) rule->starts = true;
  return rule;
}

// Splits the weights by their groups, which may be experts or heads, or by their columns.
std::optional<Rule> StartByResult(const ShardCall& call, const Labels& labels, std::size_t input) {
  for (const bool shared : {true, false}) {
    for (std::size_t axis = 0; axis < labels.inputs[input].size(); ++axis) {
      const char label = labels.inputs[input][axis];
      const std::size_t result = labels.output.find(label);
      const auto others = std::count_if(labels.inputs.begin(), labels.inputs.end(), [&](const auto& each) {
        return each.find(label) != std::string::npos;
      });
      if (label == '.' || result == std::string::npos) continue;
      // A label of other operands, too, or an axis of batches, is that of groups.
      const bool groups = others > 1 || (label >= 'A' && label <= 'Z');
      const std::optional<std::int64_t> size = call.dims(input)[axis].constant();
      if (groups != shared || !size || *size < call.ranks) continue;
      auto segments = call.segments(*call.node.outputs[0], static_cast<int>(result), *size);
      std::optional<Rule> rule = StartAt(call, labels, input, axis, std::move(segments));
      if (rule) return rule;
    }
  }
  return std::nullopt;
}

// Splits the weights by their rows. A rank takes its part of what they are multiplied by.
std::optional<Rule> StartBySum(const ShardCall& call, const Labels& labels, std::size_t input) {
  for (std::size_t axis = 0; axis < labels.inputs[input].size(); ++axis) {
    const char label = labels.inputs[input][axis];
    if (label == '.' || labels.output.find(label) != std::string::npos) continue;
    const std::optional<std::int64_t> size = call.dims(input)[axis].constant();
    if (!size || *size < call.ranks) continue;
    std::optional<Rule> rule = StartAt(call, labels, input, axis, {*size});
    if (rule) return rule;
  }
  return std::nullopt;
}

// By rows where the ranks do not divide the columns: the vocabulary of GPT-2 is odd.
std::optional<Rule> StartOf(const ShardCall& call, const Labels& labels) {
  for (const auto start : {StartByResult, StartBySum}) {
    for (std::size_t i = 0; i < labels.inputs.size(); ++i) {
      if (!call.is_weight(*call.node.inputs[i])) continue;
      std::optional<Rule> rule = start(call, labels, i);
      if (rule) return rule;
    }
  }
  return std::nullopt;
}

// Offsets that are left out in front of a bias are a tensor without elements.
bool HasBlocked(const ShardCall& call, std::size_t input) {
  return call.Has(input) && !ProductOf(call.dims(input)).Is(0);
}

// Products by weights of 4 and 8 bits: x, codes, scales, offsets, bias. The weights' part is cut where they
// are packed, so their shardings say which axis of the weights [columns, depth] is split.
std::optional<Rule> BlockedRule(const ShardCall& call) {
  const Node& node = call.node;
  const Sharding& x = call.in[0];
  const std::int64_t columns = IntAttribute(node, "columns", 0), block = IntAttribute(node, "block", 1);
  const int last = call.rank(0) - 1;
  const std::int64_t depth = call.dims(0).back().constant().value_or(0);
  Rule rule = call.Start();
  if (x.IsWhole()) {
    if (!call.may_start || columns % call.ranks != 0) return std::nullopt;
    const Sharding split = Sharding::Split(last, 1, call.segments(*node.outputs[0], last, columns));
    if (split.axis != last || !Divides(split, node.outputs[0]->type.dims, call.ranks)) return std::nullopt;
    for (std::size_t i = 1; i < 4; ++i) {
      if (HasBlocked(call, i)) rule.inputs[i] = split.Along(0);
    }
    if (call.Has(4)) rule.inputs[4] = split.Along(0);
    rule.outputs[0] = split;
    rule.attributes = {{"columns", columns / call.ranks}};
    rule.form = "columns";
    rule.starts = true;
    return rule;
  }
  if (!x.IsSplit()) return std::nullopt;
  if (x.axis != last) {
    rule.inputs[0] = rule.outputs[0] = x;
    return rule;
  }
  // Whole blocks of rows, of which each has a scale of its own. Zeros of a column are whole bytes.
  const std::int64_t blocks = depth / (block * call.ranks);
  if (!x.IsPlain() || depth % (block * call.ranks) != 0 || blocks * IntAttribute(node, "bits", 4) % 8 != 0)
    return std::nullopt;
  rule.inputs[0] = x;
  for (std::size_t i = 1; i < 4; ++i) {
    if (HasBlocked(call, i)) rule.inputs[i] = x.Along(1);
  }
  if (call.Has(4)) {
    rule.late_term = 4;
  } else {
    rule.outputs[0] = Sharding::Partial();
  }
  rule.form = "rows";
  return rule;
}

// A convolution of groups whose channels are split: whole groups on each rank.
std::optional<Rule> GroupsRule(const ShardCall& call) {
  const std::int64_t group = IntAttribute(call.node, "group", 1);
  const Sharding& x = call.in[0];
  if (!x.IsSplit()) return std::nullopt;
  Rule rule = call.Start();
  rule.inputs[0] = x;
  if (x.axis == 0) {
    if (!call.in[1].IsWhole()) return std::nullopt;
    rule.outputs[0] = x;
    return rule;
  }
  const std::optional<std::int64_t> channels = call.dims(1)[0].constant();
  if (x.axis != 1 || !x.IsPlain() || group % call.ranks != 0 || !channels) return std::nullopt;
  const Sharding own = Sharding::Split(0, *channels);
  for (std::size_t i = 1; i < call.in.size(); ++i) {
    rule.inputs[i] = own;
    if (!call.Fits(i, own)) return std::nullopt;
  }
  rule.outputs[0] = own.Along(1);
  rule.attributes = {{"group", group / call.ranks}};
  rule.form = "groups";
  return rule;
}

}  // namespace

std::optional<Rule> ProductRule(const ShardCall& call) {
  if (call.node.kind != NodeKind::kKernel) return std::nullopt;
  if (call.node.kernel == names::kBlockedMatMul) return BlockedRule(call);
  if (call.node.kernel == names::kConv && IntAttribute(call.node, "group", 1) != 1) return GroupsRule(call);
  const std::optional<Labels> labels = LabelsOf(call);
  if (!labels) return std::nullopt;
  const auto found =
      std::find_if(call.in.begin(), call.in.end(), [](const Sharding& each) { return !each.IsWhole(); });
  if (found == call.in.end()) return call.may_start ? StartOf(call, *labels) : std::nullopt;
  const auto input = static_cast<std::size_t>(found - call.in.begin());
  if (found->IsPartial() || input >= labels->inputs.size()) return std::nullopt;
  return SplitBy(call, *labels, labels->inputs[input][static_cast<std::size_t>(found->axis)], *found);
}

}  // namespace rewire::compiler
