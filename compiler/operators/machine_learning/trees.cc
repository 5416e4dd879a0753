// SPDX-License-Identifier: Apache-2.0
// Decision trees of ai.onnx.ml. All of their forms become the tensors of one kernel, rewire.tree_ensemble.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/machine_learning/classes.h"
#include "rewire/compiler/operators/machine_learning/forest.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

// The numbers of `name`, or of the tensor `name`_as_tensor.
Result<std::vector<double>> NumbersOf(Op& op, const std::string& name) {
  const std::string tensor_name = name + "_as_tensor";
  const bool is_list = op.HasAttribute(name), is_tensor = op.HasAttribute(tensor_name);
  if (is_list && is_tensor) return op.Invalid("it has both {} and {}", name, tensor_name);
  if (!is_tensor) return op.FloatList(name);
  Result<HostTensor> tensor = op.TensorAttribute(tensor_name);
  if (!tensor) return Forward(tensor);
  const std::optional<std::vector<double>> numbers = KnownFloats(op.Constant(*std::move(tensor)));
  if (!numbers) return op.Invalid("{} is no tensor of floats", tensor_name);
  return *numbers;
}

Result<NodeMode> ModeOf(const Op& op, const std::string& text) {
  static constexpr std::pair<const char*, NodeMode> kModes[] = {{"BRANCH_LEQ", kLeq}, {"BRANCH_LT", kLt},
                                                                {"BRANCH_GTE", kGte}, {"BRANCH_GT", kGt},
                                                                {"BRANCH_EQ", kEq},   {"BRANCH_NEQ", kNeq}};
  for (const auto& [name, mode] : kModes) {
    if (text == name) return mode;
  }
  return op.Unsupported("nodes_modes has '{}'", text.substr(0, 64));
}

Result<bool> IsFeature(const Op& op, std::int64_t feature, std::int64_t features) {
  if (feature >= 0 && feature < features) return true;
  return op.Invalid("a node compares feature {} of {}", feature, features);
}

using NodeKey = std::pair<std::int64_t, std::int64_t>;  // tree and node

// The trees of TreeEnsembleRegressor and -Classifier. `prefix` names the attributes of the leaves.
Result<ModelForest> ReadLists(Op& op, const std::string& prefix, std::int64_t features,
                              std::int64_t targets) {
  const Ints trees = op.IntList("nodes_treeids"), ids = op.IntList("nodes_nodeids"),
             feature_ids = op.IntList("nodes_featureids"), when_true = op.IntList("nodes_truenodeids"),
             when_false = op.IntList("nodes_falsenodeids"),
             nan_is_true = op.IntList("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = op.StringList("nodes_modes");
  const Result<std::vector<double>> values = NumbersOf(op, "nodes_values");
  if (!values) return Forward(values);
  const std::size_t count = ids.size();
  for (const std::size_t size : {trees.size(), feature_ids.size(), when_true.size(), when_false.size(),
                                 modes.size(), values->size()}) {
    if (size != count) return op.Invalid("the lists of nodes have {} and {} elements", count, size);
  }
  if (!nan_is_true.empty() && nan_is_true.size() != count)
    return op.Invalid("nodes_missing_value_tracks_true has {} elements for {} nodes", nan_is_true.size(),
                      count);
  ModelForest forest;
  // The place of each node: in `nodes`, or -1 - leaf.
  std::map<NodeKey, std::int64_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_leaf = modes[i] == "LEAF";
    const auto place = is_leaf ? -1 - static_cast<std::int64_t>(forest.leaves.size())
                               : static_cast<std::int64_t>(forest.nodes.size());
    if (!places.emplace(NodeKey{trees[i], ids[i]}, place).second)
      return op.Invalid("tree {} has two nodes {}", trees[i], ids[i]);
    if (is_leaf)
      forest.leaves.emplace_back();
    else
      forest.nodes.emplace_back();
  }
  std::set<NodeKey> children;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t place = places[{trees[i], ids[i]}];
    if (place < 0) continue;
    ModelNode& node = forest.nodes[static_cast<std::size_t>(place)];
    const Result<NodeMode> mode = ModeOf(op, modes[i]);
    if (!mode) return Forward(mode);
    if (const Result<bool> known = IsFeature(op, feature_ids[i], features); !known) return Forward(known);
    node.feature = feature_ids[i];
    node.mode = *mode;
    node.nan_is_true = !nan_is_true.empty() && nan_is_true[i] != 0;
    node.threshold = (*values)[i];
    for (const bool side : {true, false}) {
      const NodeKey child = {trees[i], side ? when_true[i] : when_false[i]};
      const auto found = places.find(child);
      if (found == places.end()) return op.Invalid("tree {} has no node {}", child.first, child.second);
      (side ? node.when_true : node.when_false) = found->second;
      children.insert(child);
    }
  }
  // A tree's root is the node that is nobody's child.
  std::set<std::int64_t> rooted;
  for (std::size_t i = 0; i < count; ++i) {
    if (children.contains({trees[i], ids[i]})) continue;
    if (!rooted.insert(trees[i]).second) return op.Invalid("tree {} has two roots", trees[i]);
    forest.roots.push_back(places[{trees[i], ids[i]}]);
  }
  const Ints leaf_trees = op.IntList(prefix + "_treeids"), leaf_ids = op.IntList(prefix + "_nodeids"),
             leaf_targets = op.IntList(prefix + "_ids");
  const Result<std::vector<double>> weights = NumbersOf(op, prefix + "_weights");
  if (!weights) return Forward(weights);
  for (const std::size_t size : {leaf_ids.size(), leaf_targets.size(), weights->size()}) {
    if (size != leaf_trees.size())
      return op.Invalid("the lists of weights have {} and {} elements", leaf_trees.size(), size);
  }
  for (std::size_t i = 0; i < leaf_trees.size(); ++i) {
    const auto found = places.find({leaf_trees[i], leaf_ids[i]});
    if (found == places.end() || found->second >= 0)
      return op.Invalid("node {} of tree {} has a weight and is no leaf", leaf_ids[i], leaf_trees[i]);
    if (leaf_targets[i] < 0 || leaf_targets[i] >= targets)
      return op.Invalid("a weight is for number {} of {}", leaf_targets[i], targets);
    forest.leaves[static_cast<std::size_t>(-1 - found->second)].push_back({leaf_targets[i], (*weights)[i]});
  }
  return forest;
}

// A transform over targets is read in two ways if there is one target.
Status CheckTransform(const Op& op, const std::string& transform, std::int64_t targets) {
  if (targets > 1 || transform == "NONE" || transform == "PROBIT") return {};
  return op.Unsupported("post_transform '{}' of one target", transform);
}

// Doubles are compared as doubles, all else as f32.
DLDataType ComparedAs(const Op& op) { return op.in(0)->type.dtype == kFloat64 ? kFloat64 : kFloat32; }

// How many features nodes may compare. A run checks those of rows whose size is open.
std::int64_t FeaturesOf(const Value& x) {
  return x.type.dims[1].constant().value_or(std::numeric_limits<std::int64_t>::max());
}

Status LowerTreeEnsembleRegressor(Op& op, const Operator& /*row*/) {
  const Result<Value*> x = RowsOf(op, ComparedAs(op));
  if (!x) return Forward(x);
  const std::int64_t features = FeaturesOf(**x);
  const std::int64_t targets = op.Int("n_targets", 1);
  if (targets < 1 || targets > 1 << 20) return op.Invalid("n_targets is {}", targets);
  const Result<ModelForest> forest = ReadLists(op, "target", features, targets);
  if (!forest) return Forward(forest);
  Result<std::vector<double>> base = NumbersOf(op, "base_values");
  if (!base) return Forward(base);
  if (base->empty()) base->resize(static_cast<std::size_t>(targets));
  if (static_cast<std::int64_t>(base->size()) != targets)
    return op.Invalid("{} base_values for {} targets", base->size(), targets);
  const std::string aggregate = op.String("aggregate_function", "SUM");
  const std::string transform = op.String("post_transform", "NONE");
  if (Status checked = CheckTransform(op, transform, targets); !checked) return checked;
  Result<Value*> scores = RunForest(op, *x, *forest, aggregate, *base);
  if (!scores) return Forward(scores);
  return SetScores(op, 0, op.Cast(*scores, kFloat32));
}

// Two classes, of which the leaves give weights for the first alone. They count for the second one then:
// `score` [N, 1]. ONNX does not say so, and its reference and ONNX Runtime differ in some of the cases; those
// in which neither is plainly right are refused.
Status SetTwoClasses(Op& op, Value* score, bool all_positive, const ClassLabels& labels) {
  const std::string transform = op.String("post_transform", "NONE");
  const bool is_logistic = transform == "LOGISTIC";
  if (!is_logistic && transform != "NONE")
    return op.Unsupported("post_transform '{}' of two classes with one score", transform);
  // A sum of positive weights is a probability, unless it still becomes one.
  const bool is_probability = all_positive && !is_logistic;
  Value* limit = op.Scalar(kFloat32, is_probability ? 0.5 : 0);
  Value* is_second = op.Compare(names::kGreater, score, limit);
  SetLabels(op, 0, op.Reshape(op.Cast(is_second, kInt64), {score->type.dims[0]}), labels);
  // The negative score beside it, or what is left of 1: [N, 2] by [2].
  Value* both = op.Apply(names::kMul, score, FloatsValue(op, {-1, 1}));
  if (is_probability) both = op.Apply(names::kAdd, both, FloatsValue(op, {1, 0}));
  op.Set(1, is_logistic ? op.Unary(names::kSigmoid, both) : both);
  return {};
}

Status LowerTreeEnsembleClassifier(Op& op, const Operator& /*row*/) {
  const Result<Value*> x = RowsOf(op, ComparedAs(op));
  if (!x) return Forward(x);
  const std::int64_t features = FeaturesOf(**x);
  const ClassLabels labels = LabelsOf(op, "classlabels_int64s");
  const auto classes = static_cast<std::int64_t>(labels.size());
  if (classes < 1) return op.Invalid("it has no labels");
  Result<ModelForest> forest = ReadLists(op, "class", features, classes);
  if (!forest) return Forward(forest);
  Result<std::vector<double>> base = NumbersOf(op, "base_values");
  if (!base) return Forward(base);
  std::set<std::int64_t> named;
  bool all_positive = true;
  for (const auto& leaf : forest->leaves) {
    for (const LeafWeight& each : leaf) {
      named.insert(each.target);
      all_positive = all_positive && each.weight >= 0;
    }
  }
  const bool one_score = classes == 2 && named.size() == 1;
  if (one_score) {
    if (*named.begin() == 1) return op.Unsupported("all weights are for the second of two classes");
    for (auto& leaf : forest->leaves)
      for (LeafWeight& each : leaf) each.target = 0;
    if (base->size() > 1) return op.Unsupported("{} base_values for one score of two classes", base->size());
  }
  const std::size_t columns = one_score ? 1 : static_cast<std::size_t>(classes);
  if (base->empty()) base->resize(columns);
  if (base->size() != columns) return op.Unsupported("{} base_values for {} classes", base->size(), columns);
  Result<Value*> scores = RunForest(op, *x, *forest, "SUM", *base);
  if (!scores) return Forward(scores);
  scores = op.Cast(*scores, kFloat32);
  if (one_score) return SetTwoClasses(op, *scores, all_positive, labels);
  SetLabels(op, 0, HighestClass(op, *scores), labels);
  return SetScores(op, 1, *scores);
}

// The numbers of a tensor attribute of floats or bytes.
Result<std::vector<double>> TensorNumbers(Op& op, const char* name) {
  Result<HostTensor> tensor = op.TensorAttribute(name);
  if (!tensor) return Forward(tensor);
  if (tensor->dtype == kUInt8) {
    std::vector<double> numbers;
    for (const std::byte each : tensor->bytes.view) numbers.push_back(std::to_integer<int>(each));
    return numbers;
  }
  const std::optional<std::vector<double>> numbers = KnownFloats(op.Constant(*std::move(tensor)));
  if (!numbers) return op.Invalid("{} is no tensor of numbers", name);
  return *numbers;
}

// The sets of membership_values, one behind the other with a NaN behind each.
std::vector<std::vector<double>> SetsOf(const std::vector<double>& values) {
  std::vector<std::vector<double>> sets(1);
  for (const double value : values) {
    if (std::isnan(value))
      sets.emplace_back();
    else
      sets.back().push_back(value);
  }
  return sets;
}

Status LowerTreeEnsemble(Op& op, const Operator& /*row*/) {
  const Result<Value*> x = RowsOf(op, ComparedAs(op));
  if (!x) return Forward(x);
  const std::int64_t features = FeaturesOf(**x);
  const std::int64_t targets = op.Int("n_targets", 1);
  if (targets < 1 || targets > 1 << 20) return op.Invalid("n_targets is {}", targets);
  const Ints feature_ids = op.IntList("nodes_featureids"), when_true = op.IntList("nodes_truenodeids"),
             when_false = op.IntList("nodes_falsenodeids"), true_leafs = op.IntList("nodes_trueleafs"),
             false_leafs = op.IntList("nodes_falseleafs"), leaf_targets = op.IntList("leaf_targetids"),
             nan_is_true = op.IntList("nodes_missing_value_tracks_true");
  const Result<std::vector<double>> splits = TensorNumbers(op, "nodes_splits");
  if (!splits) return Forward(splits);
  const Result<std::vector<double>> modes = TensorNumbers(op, "nodes_modes");
  if (!modes) return Forward(modes);
  const Result<std::vector<double>> weights = TensorNumbers(op, "leaf_weights");
  if (!weights) return Forward(weights);
  std::vector<double> members;
  if (op.HasAttribute("membership_values")) {
    const Result<std::vector<double>> values = TensorNumbers(op, "membership_values");
    if (!values) return Forward(values);
    members = *values;
  }
  if (op.HasAttribute("nodes_hitrates")) (void)op.Find("nodes_hitrates");
  const std::size_t count = feature_ids.size();
  for (const std::size_t size : {when_true.size(), when_false.size(), true_leafs.size(), false_leafs.size(),
                                 splits->size(), modes->size()}) {
    if (size != count) return op.Invalid("the lists of nodes have {} and {} elements", count, size);
  }
  if (!nan_is_true.empty() && nan_is_true.size() != count)
    return op.Invalid("nodes_missing_value_tracks_true has {} elements for {} nodes", nan_is_true.size(),
                      count);
  if (leaf_targets.size() != weights->size())
    return op.Invalid("{} leaf_targetids for {} leaf_weights", leaf_targets.size(), weights->size());
  std::vector<std::vector<double>> sets = SetsOf(members);
  std::size_t next_set = 0;
  ModelForest forest;
  forest.nodes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    ModelNode& node = forest.nodes[i];
    if (const Result<bool> known = IsFeature(op, feature_ids[i], features); !known) return Forward(known);
    const double mode = (*modes)[i];
    if (mode < 0 || mode > 6) return op.Invalid("nodes_modes has {}", mode);
    node.feature = feature_ids[i];
    node.mode = static_cast<NodeMode>(static_cast<std::int32_t>(mode));
    node.nan_is_true = !nan_is_true.empty() && nan_is_true[i] != 0;
    node.threshold = (*splits)[i];
    if (node.mode == kMember) {
      if (next_set >= sets.size()) return op.Invalid("membership_values has {} sets", sets.size());
      node.members = std::move(sets[next_set++]);
      // Nothing is a member of an empty set: no number equals NaN.
      if (node.members.empty()) node.members.push_back(std::numeric_limits<double>::quiet_NaN());
    }
    for (const bool side : {true, false}) {
      const std::int64_t child = side ? when_true[i] : when_false[i];
      const bool is_leaf = (side ? true_leafs[i] : false_leafs[i]) != 0;
      const std::size_t most = is_leaf ? leaf_targets.size() : count;
      if (child < 0 || static_cast<std::uint64_t>(child) >= most)
        return op.Invalid("node {} has child {} of {}", i, child, most);
      (side ? node.when_true : node.when_false) = is_leaf ? -1 - child : child;
    }
  }
  for (std::size_t i = 0; i < leaf_targets.size(); ++i) {
    if (leaf_targets[i] < 0 || leaf_targets[i] >= targets)
      return op.Invalid("a weight is for number {} of {}", leaf_targets[i], targets);
    forest.leaves.push_back({{leaf_targets[i], (*weights)[i]}});
  }
  for (const std::int64_t root : op.IntList("tree_roots")) {
    if (root < 0 || static_cast<std::uint64_t>(root) >= count)
      return op.Invalid("tree_roots has {} of {} nodes", root, count);
    // A tree that is one leaf is a node whose children are that leaf.
    const ModelNode& node = forest.nodes[static_cast<std::size_t>(root)];
    const bool one_leaf = node.when_true < 0 && node.when_true == node.when_false;
    forest.roots.push_back(one_leaf ? node.when_true : root);
  }
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kTransforms[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};
  const std::int64_t aggregate = op.Int("aggregate_function", 1), transform = op.Int("post_transform", 0);
  if (aggregate < 0 || aggregate > 3) return op.Invalid("aggregate_function is {}", aggregate);
  if (transform < 0 || transform > 4) return op.Invalid("post_transform is {}", transform);
  if (Status checked = CheckTransform(op, kTransforms[transform], targets); !checked) return checked;
  const std::vector<double> base(static_cast<std::size_t>(targets));
  Result<Value*> scores = RunForest(op, *x, forest, kAggregates[aggregate], base);
  if (!scores) return Forward(scores);
  scores = PostTransformed(op, *scores, kTransforms[transform]);
  if (!scores) return Forward(scores);
  op.Set(0, op.Cast(*scores, op.in(0)->type.dtype));
  return {};
}

constexpr const char kListAttributes[] =
    "base_values base_values_as_tensor ~nodes_hitrates ~nodes_hitrates_as_tensor nodes_featureids "
    "nodes_values nodes_values_as_tensor nodes_falsenodeids nodes_missing_value_tracks_true nodes_modes "
    "nodes_nodeids nodes_treeids nodes_truenodeids post_transform class_ids class_nodeids class_treeids "
    "class_weights class_weights_as_tensor classlabels_int64s classlabels_strings";

constexpr const char kTargetAttributes[] =
    "aggregate_function base_values base_values_as_tensor n_targets ~nodes_hitrates "
    "~nodes_hitrates_as_tensor "
    "nodes_featureids nodes_values nodes_values_as_tensor nodes_falsenodeids nodes_missing_value_tracks_true "
    "nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids post_transform target_ids target_nodeids "
    "target_treeids target_weights target_weights_as_tensor";

}  // namespace

std::span<const Operator> TreeOperators() {
  static constexpr Operator kOperators[] = {
      {"TreeEnsemble", 5, 0, 1, 1,
       "aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs "
       "nodes_falsenodeids nodes_featureids ~nodes_hitrates nodes_missing_value_tracks_true nodes_modes "
       "nodes_splits nodes_trueleafs nodes_truenodeids post_transform tree_roots",
       LowerTreeEnsemble},
      {"TreeEnsembleClassifier", 1, 0, 1, 1, kListAttributes, LowerTreeEnsembleClassifier},
      {"TreeEnsembleRegressor", 1, 0, 1, 1, kTargetAttributes, LowerTreeEnsembleRegressor},
  };
  return kOperators;
}

}  // namespace rewire::compiler
