// SPDX-License-Identifier: Apache-2.0
//
// The program of rewire.fused that computes the same as several elementwise nodes.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

// Whether a step of a program can do what the node does. It must be a known kernel on floats, bf16 or truth
// values, whose output has dimensions that are known without a shape function. A step is the same to the bit,
// but for x to the power 2 or 3, which become products; not if `strict`.
// `halves` says whether f16 counts, which a program rounds only at its end.
bool IsFusible(const Node& node, bool strict = false, bool halves = false);
// Whether the node is between floats and bytes, by one constant scale and zero for all elements. A program
// does the same to the bit. It has bytes only as its inputs and as its result.
bool ConvertsBytes(const Node& node);
// The inputs that are operands of the node's step. Others are numbers of the step.
std::span<Value* const> OperandsOf(const Node& node);
// Whether a program with this node alone is faster than the node's own kernel. That is so if the kernel
// computes one element after the other, as all do with bf16, or goes over short runs because an input is
// broadcast.
bool IsSlowAlone(const Node& node);

class ElementwiseProgram {
 public:
  // For nodes that are fusible or convert bytes, in the order in which they run; the last one's output is the
  // program's.
  ElementwiseProgram(const Edit& edit, const std::vector<Node*>& nodes);

  // As the kernel's attribute has it.
  const std::string& text() const { return text_; }
  // How many steps each node has become, in their order.
  const std::vector<std::size_t>& steps_of_nodes() const { return steps_of_nodes_; }
  // In the order of the program. The first one is one that the output may overwrite, if there is one.
  const std::vector<Value*>& inputs() const { return inputs_; }

 private:
  void FindInputs(const Edit& edit, const std::vector<Node*>& nodes);
  void AddNode(const Node& node);
  // Adds a step and returns its name, "r0".
  std::string Step(const std::string& operation, const std::vector<std::string>& operands);
  std::string OperandOf(const Value* value);

  std::string text_;
  std::size_t steps_ = 0;
  std::vector<std::size_t> steps_of_nodes_;
  std::vector<Value*> inputs_;
  std::unordered_map<const Value*, std::string> names_;
};

}  // namespace rewire::compiler
