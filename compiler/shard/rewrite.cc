// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/rewrite.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/node_list.h"
#include "rewire/compiler/shard/table_rows.h"
#include "rewire/compiler/shard/weights.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

class Rewriter {
 public:
  Rewriter(Graph* graph, const ShardPlan& plan, std::int64_t rank)
      : graph_(*graph), plan_(plan), rank_(rank), cutter_(graph, plan.ranks, rank) {}

  void Run() {
    for (Value* parameter : graph_.main.parameters) Shrink(parameter, nullptr);
    Rewrite(&graph_.main);
  }

 private:
  // Values that a block and those around it have made of others. Those of a block end with it.
  using Made = std::map<std::pair<const Value*, std::string>, Value*>;

  void Rewrite(Block* block) {
    const Made before = made_;
    NodeList list(&graph_);
    std::swap(list, list_);
    for (Node* node : block->nodes) RewriteNode(node);
    for (Value*& result : block->results) {
      if (!plan_.split_results.contains(result)) result = As(result, Sharding::Whole());
    }
    std::swap(list, list_);
    block->nodes = std::move(list.nodes());
    made_ = before;
  }

  void RewriteNode(Node* node) {
    const auto found = plan_.rules.find(node);
    const Rule* rule = found == plan_.rules.end() ? nullptr : &found->second;
    const bool blocked = node->kind == NodeKind::kKernel && node->kernel == names::kBlockedMatMul;
    std::vector<Value*> inputs = node->inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) continue;
      const Sharding needed = rule != nullptr ? rule->inputs[i] : Sharding::Whole();
      inputs[i] = blocked && i > 0 && i < 4 && needed.IsSplit() ? cutter_.CutBlocked(*node, i, needed)
                                                                : As(inputs[i], needed);
    }
    for (Node::Extent& extent : node->extents) {
      if (extent.shape != nullptr) extent.shape = As(extent.shape, Sharding::Whole());
    }
    node->inputs = std::move(inputs);
    for (Block& inner : node->blocks) Rewrite(&inner);
    if (rule == nullptr) {
      list_.nodes().push_back(node);
      return;
    }
    for (const Attribute& attribute : rule->attributes) SetAttribute(node, attribute.name, attribute.value);
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      Shrink(node->outputs[i], i < node->extents.size() ? &node->extents[i] : nullptr);
    }
    if (node->kind == NodeKind::kReshape && node->inputs.size() > 1) node->inputs[1] = node->extents[0].shape;
    if (rule->late_term) {
      AddLate(node, *rule);
    } else if (rule->own_rows) {
      AddOwnRows(node);
    } else {
      list_.nodes().push_back(node);
    }
  }

  // Makes the value the rank's part of itself.
  void Shrink(Value* value, Node::Extent* extent) {
    const Sharding sharding = plan_.Of(value);
    if (sharding.IsWhole()) return;
    whole_dims_.emplace(value, value->type.dims);
    model_names_.emplace(value, value->model_name);
    // A part is none of the model's values. Results keep their names.
    if (!plan_.split_results.contains(value)) value->model_name.clear();
    if (!sharding.IsSplit()) return;
    value->type.dims = PartDims(sharding, value->type.dims, plan_.ranks);
    if (extent == nullptr) return;
    const auto axis = static_cast<std::size_t>(sharding.axis);
    if (extent->dims.size() > axis) extent->dims[axis] = value->type.dims[axis];
    if (extent->shape == nullptr) return;
    std::vector<std::int64_t> divisors(value->type.dims.size(), 1);
    divisors[axis] = plan_.ranks;
    extent->shape = list_.Call(names::kDiv, {extent->shape, list_.Ints("ranks", divisors)}, {},
                               extent->shape->name, extent->shape->type);
  }

  // The product without its term, the sum over the ranks, and then the term.
  void AddLate(Node* node, const Rule& rule) {
    Value* output = node->outputs[0];
    const std::size_t at = *rule.late_term;
    Value* term = node->inputs[at];
    node->inputs.resize(at);
    while (!node->inputs.empty() && IsLeftOut(node->inputs.back())) node->inputs.pop_back();
    Value* partial = graph_.NewValue(output->name, output->type);
    partial->producer = node;
    node->outputs[0] = partial;
    list_.nodes().push_back(node);
    Value* sum = Reduce(partial);
    const double beta = FloatAttribute(*node, "beta", 1);
    if (node->kernel == names::kGemm && beta != 1) {
      Value* factor = Scalar("beta", static_cast<float>(beta), term->type.dtype);
      term = list_.Call(names::kMul, {term, factor}, {}, term->name, term->type);
    }
    if (rule.late_axis >= 0) {
      Shape dims(output->type.dims.size() - static_cast<std::size_t>(rule.late_axis), DimExpr(1));
      dims[0] = term->type.dims[0];
      if (term->IsConstant()) {
        term = graph_.NewView(term->name, term, *ConstantDims(dims));
      } else {
        term = list_.Reshape(term, std::move(dims));
      }
    }
    Replace(output, names::kAdd, {sum, term}, *node);
  }

  // The rank's rows of a table, and zeros where other ranks have the row.
  void AddOwnRows(Node* node) {
    Value* output = node->outputs[0];
    const std::int64_t rows = *node->inputs[0]->type.dims[0].constant() * plan_.ranks;
    const OwnRows found = FindOwnRows(&list_, node->inputs[1], rows, plan_.ranks, rank_);
    node->inputs[1] = found.positions;
    Value* gathered = graph_.NewValue(output->name, output->type);
    gathered->producer = node;
    node->outputs[0] = gathered;
    list_.nodes().push_back(node);
    Shape dims = found.own->type.dims;
    dims.push_back(1);
    Value* own = list_.Reshape(found.own, std::move(dims));
    Replace(output, names::kWhere, {own, gathered, Scalar("zero", 0, output->type.dtype)}, *node);
  }

  // Appends a call that makes `output` in place of `node`.
  void Replace(Value* output, const char* kernel, std::vector<Value*> inputs, const Node& node) {
    Node* call = graph_.NewNode(NodeKind::kKernel);
    call->kernel = kernel;
    call->source = node.source;
    call->inputs = std::move(inputs);
    call->outputs = {output};
    call->extents = {node.extents[0]};
    output->producer = call;
    list_.nodes().push_back(call);
  }

  Value* Scalar(const char* name, float element, DLDataType dtype) {
    Value* scalar = NewFloats(&graph_, name, {}, {element});
    if (dtype == kFloat32) return scalar;
    return list_.Call(names::kCast, {scalar}, {}, scalar->name, TensorOf(dtype, {}));
  }

  static bool IsLeftOut(const Value* value) { return value == nullptr || ProductOf(value->type.dims).Is(0); }

  Value* As(Value* value, const Sharding& needed) {
    if (value == nullptr) return nullptr;
    const Sharding given = plan_.Of(value);
    if (given == needed) return value;
    if (!given.IsWhole()) return PartOf(Whole(value, given), needed);
    return PartOf(value, needed);
  }

  // The rank's part of a whole value.
  Value* PartOf(Value* whole, const Sharding& needed) {
    if (needed.IsWhole()) return whole;
    Value*& part = made_[{whole, needed.Text()}];
    if (part != nullptr) return part;
    if (needed.IsPartial()) {
      // A term of the first rank.
      part = rank_ == 0 ? whole : Scalar("zero", 0, whole->type.dtype);
    } else if (IsWeight(graph_, *whole)) {
      part = cutter_.Cut(whole, needed, &list_.nodes());
    } else {
      const std::int64_t size = needed.RowSize() / plan_.ranks;
      part = list_.Slice(whole, needed.axis, rank_ * size, (rank_ + 1) * size);
    }
    return part;
  }

  Value* Whole(Value* value, const Sharding& given) {
    Value*& whole = made_[{value, "whole"}];
    if (whole == nullptr) {
      whole = given.IsPartial() ? Reduce(value) : Gather(value, given);
      const auto name = model_names_.find(value);
      if (name != model_names_.end()) whole->model_name = name->second;
    }
    return whole;
  }

  Value* Reduce(Value* value) { return list_.Call(names::kAllReduce, {value}, {}, value->name, value->type); }

  Value* GatherPlain(Value* value, int axis) {
    Type type = value->type;
    DimExpr& size = type.dims[static_cast<std::size_t>(axis)];
    size = size * DimExpr(plan_.ranks);
    return list_.Call(names::kAllGather, {value}, {{"axis", std::int64_t{axis}}}, value->name, type);
  }

  // Rows get an axis of their own, and each segment is gathered by itself.
  Value* Gather(Value* value, const Sharding& given) {
    if (given.IsPlain()) return GatherPlain(value, given.axis);
    const auto at = static_cast<std::size_t>(given.axis);
    Shape rows = value->type.dims;
    rows[at] = given.outer;
    rows.insert(rows.begin() + given.axis + 1, DimExpr(given.RowSize() / plan_.ranks));
    Value* apart = list_.Reshape(value, rows);
    std::vector<Value*> segments;
    std::int64_t start = 0;
    for (const std::int64_t segment : given.segments) {
      const std::int64_t size = segment / plan_.ranks;
      Value* part =
          given.segments.size() == 1 ? apart : list_.Slice(apart, given.axis + 1, start, start + size);
      segments.push_back(GatherPlain(part, given.axis + 1));
      start += size;
    }
    return list_.Reshape(list_.Concat(segments, given.axis + 1), whole_dims_.at(value));
  }

  Graph& graph_;
  const ShardPlan& plan_;
  const std::int64_t rank_;
  WeightCutter cutter_;
  NodeList list_{&graph_};
  Made made_;
  std::map<const Value*, Shape> whole_dims_;
  std::map<const Value*, std::string> model_names_;
};

}  // namespace

void RewriteForRank(Graph* graph, const ShardPlan& plan, std::int64_t rank) {
  Rewriter(graph, plan, rank).Run();
}

}  // namespace rewire::compiler
