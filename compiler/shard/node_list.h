// SPDX-License-Identifier: Apache-2.0
//
// NodeList: the nodes of a block that is written anew, and calls that are added to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

class NodeList {
 public:
  explicit NodeList(Graph* graph) : graph_(graph) {}

  std::vector<Node*>& nodes() { return nodes_; }

  Value* Call(const std::string& kernel, std::vector<Value*> inputs, std::vector<Attribute> attributes,
              const std::string& name, Type type);
  Value* Reshape(Value* x, Shape dims);
  // Elements `start` to `end` of an axis.
  Value* Slice(Value* x, int axis, std::int64_t start, std::int64_t end);
  Value* Concat(const std::vector<Value*>& parts, int axis);
  // A constant i64[].
  Value* Int(const std::string& name, std::int64_t element);
  // A constant i64[n].
  Value* Ints(const std::string& name, const std::vector<std::int64_t>& elements);

 private:
  Value* IntsOfShape(const std::string& name, std::span<const std::int64_t> elements,
                     const std::vector<std::int64_t>& shape);
  Value* Append(Node* node, std::vector<Value*> inputs, const std::string& name, Type type);

  Graph* graph_;
  std::vector<Node*> nodes_;
};

}  // namespace rewire::compiler
