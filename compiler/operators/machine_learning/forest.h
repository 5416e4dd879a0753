// SPDX-License-Identifier: Apache-2.0
// Decision trees as a model has them, and the call of the kernel that walks them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// How a node compares; the kernel's numbers.
enum NodeMode : std::int32_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember };
// A node that is no leaf, as a model has it. A child below 0 is the leaf -1 - child.
struct ModelNode {
  std::int64_t feature = 0;
  NodeMode mode = kLeq;
  bool nan_is_true = false;
  double threshold = 0;
  std::vector<double> members;  // of kMember
  std::int64_t when_true = 0, when_false = 0;
};

struct LeafWeight {
  std::int64_t target = 0;
  double weight = 0;
};

struct ModelForest {
  std::vector<ModelNode> nodes;
  std::vector<std::int64_t> roots;
  std::vector<std::vector<LeafWeight>> leaves;
};

// Calls the kernel on x [N, features], of f32 or f64: [N, base.size()]. `aggregate` is SUM, AVERAGE, MIN or
// MAX.
Result<Value*> RunForest(Op& op, Value* x, const ModelForest& forest, const std::string& aggregate,
                         const std::vector<double>& base);

}  // namespace rewire::compiler
