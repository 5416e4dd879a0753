// SPDX-License-Identifier: Apache-2.0
//
// Lets a loop update a value that it carries in place: a cache of keys, to which each step adds a row, is
// then neither copied nor allocated in a step. If the first value is not the loop's own, it is copied once
// before the loop. A host that donates it gets it updated in its own memory, without even that copy.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

std::size_t Reads(const Node& node, const Value* value) {
  std::size_t count = static_cast<std::size_t>(std::count(node.inputs.begin(), node.inputs.end(), value));
  for (const Node::Extent& extent : node.extents) count += extent.shape == value ? 1 : 0;
  return count;
}

// How often the blocks inside a node read the value.
std::size_t InnerReads(const Node& node, const Value* value) {
  std::size_t count = 0;
  for (const Block& block : node.blocks) {
    count += static_cast<std::size_t>(std::count(block.results.begin(), block.results.end(), value));
    for (const Node* inner : block.nodes) count += Reads(*inner, value) + InnerReads(*inner, value);
  }
  return count;
}

// A kernel that reads its arguments and keeps none of them. Views of a value, and what holds it, would see
// later updates.
bool OnlyReads(const Node& node) {
  return node.kind == NodeKind::kKernel && !node.returns && (node.flags & kKernelObjects) == 0;
}

class Carrying {
 public:
  explicit Carrying(Graph* graph) : graph_(*graph) {}

  void Run(Block* block) {
    std::vector<Node*> nodes;
    for (Node* node : block->nodes) {
      for (Block& inner : node->blocks) Run(&inner);
      if (node->kind == NodeKind::kLoop) {
        for (std::size_t i = 0; i < node->outputs.size(); ++i) Update(*block, node, i, &nodes);
      }
      nodes.push_back(node);
    }
    block->nodes = std::move(nodes);
  }

 private:
  // Carried value i. What must run before the loop is added to `before`.
  void Update(const Block& around, Node* loop, std::size_t i, std::vector<Node*>* before) {
    Block& body = loop->blocks[0];
    const Value* carried = body.parameters[i + 1];
    const Value* result = body.results[i + 1];
    if (result == nullptr || !carried->type.IsTensor() || !carried->type.ranked) return;
    Node* writer = result->producer;
    const auto place = std::find(body.nodes.begin(), body.nodes.end(), writer);
    if (writer == nullptr || place == body.nodes.end() || writer->in_place) return;
    if (result->on_device || loop->inputs[i + 2]->on_device) return;
    const std::optional<std::uint32_t> input = InputOf(*writer, carried);
    if (!input || !SameMemory(*writer, *carried)) return;
    if (!IsUpdatedOnce(body, place - body.nodes.begin(), carried, result)) return;
    Value*& first = loop->inputs[i + 2];
    if (ShapeText(first->type.dims) != ShapeText(carried->type.dims)) return;
    if (!IsOwn(around, *loop, first)) first = Copied(first, before);
    writer->in_place = input;
  }

  // The only input that is the carried value, if the kernel may write over it.
  std::optional<std::uint32_t> InputOf(const Node& writer, const Value* carried) const {
    if (!OnlyReads(writer) || Reads(writer, carried) != 1) return std::nullopt;
    const std::uint32_t candidates = InputsToWriteOver(graph_, writer);
    for (std::uint32_t i = 0; i < writer.inputs.size() && i < 32; ++i) {
      if (writer.inputs[i] == carried && (candidates >> i & 1) != 0) return i;
    }
    return std::nullopt;
  }

  static bool SameMemory(const Node& writer, const Value& carried) {
    const Node::Extent& made = writer.extents[0];
    return made.shape == nullptr && made.dims == carried.type.dims &&
           writer.outputs[0]->type.dtype == carried.type.dtype;
  }

  // Nothing reads the carried value behind the writer, and the result is one of the loop's results and
  // otherwise only read.
  static bool IsUpdatedOnce(const Block& body, std::ptrdiff_t writer, const Value* carried,
                            const Value* result) {
    if (std::count(body.results.begin(), body.results.end(), result) != 1 ||
        std::count(body.results.begin(), body.results.end(), carried) != 0)
      return false;
    for (std::size_t k = 0; k < body.nodes.size(); ++k) {
      const Node& node = *body.nodes[k];
      if (InnerReads(node, carried) + InnerReads(node, result) != 0) return false;
      if (Reads(node, carried) != 0 && (std::cmp_greater(k, writer) || !OnlyReads(node))) return false;
      if (Reads(node, result) != 0 && !OnlyReads(node)) return false;
    }
    return true;
  }

  // Whether the loop alone uses the value, and a kernel has written it into memory of its own.
  static bool IsOwn(const Block& around, const Node& loop, const Value* value) {
    const Node* maker = value->producer;
    if (maker == nullptr || !OnlyReads(*maker) ||
        std::find(around.nodes.begin(), around.nodes.end(), maker) == around.nodes.end())
      return false;
    if (std::count(around.results.begin(), around.results.end(), value) != 0) return false;
    for (const Node* node : around.nodes) {
      const bool is_loop = node == &loop;
      if (InnerReads(*node, value) != 0 || (is_loop && Reads(*node, value) != 1)) return false;
      if (!is_loop && Reads(*node, value) != 0 && !OnlyReads(*node)) return false;
    }
    return LastReader(around, value) == &loop;
  }

  static const Node* LastReader(const Block& block, const Value* value) {
    for (auto at = block.nodes.rbegin(); at != block.nodes.rend(); ++at) {
      if (Reads(**at, value) != 0) return *at;
    }
    return nullptr;
  }

  Value* Copied(Value* value, std::vector<Node*>* before) {
    Node* copy = graph_.NewNode(NodeKind::kKernel);
    copy->kernel = names::kCopy;
    copy->flags = kKernelInPlace;
    copy->inputs.push_back(value);
    Value* output = graph_.NewValue(value->name, value->type);
    output->producer = copy;
    copy->outputs.push_back(output);
    copy->extents.push_back({output->type.dims, nullptr});
    before->push_back(copy);
    return output;
  }

  Graph& graph_;
};

}  // namespace

void CarryInPlace(Graph* graph) { Carrying(graph).Run(&graph->main); }

}  // namespace rewire::compiler
