// SPDX-License-Identifier: Apache-2.0
//
// Decides which nodes run on the device that the model is compiled for, and inserts the copies between it and
// the host.
//
// A node can run there if the device has a kernel for it that takes its attributes, dtypes and ranks.
// Integers that are shapes or sizes stay on the host. Nodes that hang together on the device must have enough
// work to be worth the copies and launches. What If and Loop take and give stays on the host, and so do the
// inputs and outputs of `main`.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/dim_limits.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

constexpr std::string_view kStock = "rewire.";
constexpr std::string_view kOnDevice = "rewire.device.";
// What kernels of devices take (kernels/device/code/arguments.h).
constexpr int kMostRank = 8;
// An unknown dimension is taken to have this size when work is compared.
constexpr std::int64_t kUsualSize = 64;

bool IsFloat(DLDataType dtype) { return dtype.code == kFloat; }

class Placement {
 public:
  explicit Placement(Graph* graph) : graph_(*graph), limits_(*graph) {}

  void Run() {
    FindHostValues(graph_.main);
    Collect(graph_.main);
    LeaveOutLittleWork();
    MarkValues(graph_.main);
    InsertCopies(&graph_.main);
  }

 private:
  // Values that instructions read on the host.
  void FindHostValues(const Block& block) {
    for (const Node* node : block.nodes) {
      for (const Node::Extent& extent : node->extents) Host(extent.shape);
      if (node->kind == NodeKind::kReshape && node->inputs.size() > 1) Host(node->inputs[1]);
      if (node->kind == NodeKind::kIf || node->kind == NodeKind::kLoop) {
        for (const Value* input : node->inputs) Host(input);
      }
      for (const Block& inner : node->blocks) {
        for (const Value* result : inner.results) Host(result);
        FindHostValues(inner);
      }
    }
  }
  void Host(const Value* value) {
    if (value != nullptr) on_host_.insert(value);
  }

  static std::string NameOnDevice(const Node& node) {
    return std::string(kOnDevice) + node.kernel.substr(kStock.size());
  }

  // A short list of integers is a shape, or an index that the host computes with.
  static bool IsShape(const Value& value) {
    return !IsFloat(value.type.dtype) && (value.elements || value.type.rank() <= 1);
  }

  // Null if the device can run the kernel that the node calls.
  const char* WhyOnHost(const Node& node) const {
    if (node.returns || node.flags != 0 || node.inputs.empty() || !node.kernel.starts_with(kStock)) {
      return "it makes values, or takes lists or texts";
    }
    for (const std::vector<Value*>* list : {&node.inputs, &node.outputs}) {
      for (const Value* value : *list) {
        const bool tensor = value != nullptr && value->type.IsTensor() && value->type.ranked;
        if (!tensor || value->type.rank() > kMostRank)
          return "a tensor is missing, or of more than 8 dimensions";
      }
    }
    for (const Node::Extent& extent : node.extents) {
      if (extent.shape != nullptr) return "the size of its output is known only during the run";
    }
    const bool shapes = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Value* output) {
      return IsShape(*output) && (on_host_.contains(output) || !AnyFloat(node.inputs));
    });
    if (shapes) return "shapes and sizes, which the host reads";
    // Casts between integers are left to the host.
    if (node.kernel == "rewire.cast" && !AnyFloat(node.inputs) && !AnyFloat(node.outputs)) {
      return "integers and bools, which sizes and conditions depend on";
    }
    // The device has one zero for a vector, the CPU may have several.
    if (node.kernel == "rewire.matmul_integer" &&
        (node.inputs[0]->type.rank() == 1 || node.inputs[1]->type.rank() == 1)) {
      return "the device's kernel takes other dtypes or attributes";
    }
    Node moved = node;
    moved.kernel = NameOnDevice(node);
    if (graph_.kernels->Row(moved.kernel) == nullptr) return "the device has no such kernel";
    return graph_.kernels->Check(moved) ? nullptr : "the device's kernel takes other dtypes or attributes";
  }
  static bool AnyFloat(const std::vector<Value*>& values) {
    return std::any_of(values.begin(), values.end(),
                       [](const Value* value) { return IsFloat(value->type.dtype); });
  }

  void Collect(const Block& block) {
    for (Node* node : block.nodes) {
      if (node->kind == NodeKind::kKernel) node->why_on_host = WhyOnHost(*node);
      if (node->kind == NodeKind::kKernel && node->why_on_host == nullptr) {
        index_[node] = candidates_.size();
        candidates_.push_back(node);
      }
      for (const Block& inner : node->blocks) Collect(inner);
    }
  }

  std::int64_t SizeOf(const Shape& dims) const {
    std::int64_t size = 1;
    for (const DimExpr& dim : dims) {
      const auto most = limits_.MostOf({dim});
      const std::int64_t known = dim.constant().value_or(most ? most->front() : kUsualSize);
      size *= std::clamp<std::int64_t>(known, 1, std::int64_t{1} << 20);
      size = std::min(size, std::int64_t{1} << 40);
    }
    return size;
  }

  // Rough: elements that are written, times elements of a constant operand for each channel of the output.
  std::int64_t WorkOf(const Node& node) const {
    std::int64_t work = 0;
    for (const Value* output : node.outputs) work += SizeOf(output->type.dims);
    const Value* weights = node.inputs.size() > 1 ? node.inputs[1] : nullptr;
    if (weights == nullptr || weights->type.rank() < 2 || node.inputs[0]->type.rank() < 2) return work;
    const std::int64_t all = SizeOf(weights->type.dims);
    return work * std::max<std::int64_t>(1, all / SizeOf({weights->type.dims.back()}) / 16);
  }

  // Nodes that pass values to each other on the device stay or go together.
  void LeaveOutLittleWork() {
    std::vector<std::size_t> group(candidates_.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    const std::function<std::size_t(std::size_t)> root = [&](std::size_t i) {
      while (group[i] != i) i = group[i] = group[group[i]];
      return i;
    };
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      for (const Value* input : candidates_[i]->inputs) {
        const Node* maker = input->producer;
        while (maker != nullptr && maker->kind == NodeKind::kReshape) maker = maker->inputs[0]->producer;
        if (const auto found = index_.find(maker); found != index_.end())
          group[root(i)] = root(found->second);
      }
    }
    std::vector<std::int64_t> work(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) work[root(i)] += WorkOf(*candidates_[i]);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (work[root(i)] >= graph_.device->least_work) {
        placed_.insert(candidates_[i]);
      } else {
        candidates_[i]->why_on_host = "too little work for launches and copies";
      }
    }
  }

  void MarkValues(Block& block) {
    for (Node* node : block.nodes) {
      if (placed_.contains(node)) {
        node->kernel = NameOnDevice(*node);
        for (Value* output : node->outputs) output->on_device = true;
      } else if (node->kind == NodeKind::kReshape) {
        node->outputs[0]->on_device = node->inputs[0]->on_device;
      }
      for (Block& inner : node->blocks) MarkValues(inner);
    }
  }

  // The same value on the other side: a constant of its own, or a copy behind the node that makes the value.
  Value* Other(Value* value) {
    Value*& other = others_[value];
    if (other != nullptr) return other;
    other = graph_.NewValue(value->name, value->type);
    other->on_device = !value->on_device;
    if (value->constant) {
      other->constant = value->constant;
      return other;
    }
    Node* copy = graph_.NewNode(NodeKind::kDeviceCopy);
    copy->inputs = {value};
    copy->outputs = {other};
    if (value->producer != nullptr) copy->source = value->producer->source;
    other->producer = copy;
    copies_[value].push_back(copy);
    return other;
  }
  Value* On(bool device, Value* value) {
    const bool tensor = value != nullptr && value->type.IsTensor();
    return tensor && value->on_device != device ? Other(value) : value;
  }

  void Redirect(Block* block) {
    for (Node* node : block->nodes) {
      const bool device = placed_.contains(node);
      const bool any_side = node->kind == NodeKind::kReshape || node->kind == NodeKind::kShapeOf;
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        if (any_side && i == 0) continue;
        node->inputs[i] = On(device, node->inputs[i]);
      }
      for (Node::Extent& extent : node->extents) extent.shape = On(false, extent.shape);
      for (Block& inner : node->blocks) Redirect(&inner);
    }
    for (Value*& result : block->results) result = On(false, result);
  }

  void InsertCopies(Block* block) {
    Redirect(block);
    Insert(block);
  }

  // Puts copies behind the nodes whose outputs they read. Copies of what no node of `main` makes stand first.
  void Insert(Block* block) {
    std::vector<Node*> nodes;
    const auto append = [&](const Value* value) {
      const auto found = copies_.find(value);
      if (found == copies_.end()) return;
      nodes.insert(nodes.end(), found->second.begin(), found->second.end());
      copies_.erase(found);
    };
    for (const Value* parameter : block->parameters) append(parameter);
    if (block == &graph_.main) {
      std::unordered_set<const Value*> made;
      ForEachBlock(block, [&](Block* each) {
        made.insert(each->parameters.begin(), each->parameters.end());
        for (const Node* node : each->nodes) made.insert(node->outputs.begin(), node->outputs.end());
      });
      std::vector<const Value*> computed;
      for (const auto& [value, copies] : copies_) {
        if (!made.contains(value)) computed.push_back(value);
      }
      std::sort(computed.begin(), computed.end(),
                [](const Value* a, const Value* b) { return a->name < b->name; });
      for (const Value* value : computed) append(value);
    }
    for (Node* node : block->nodes) {
      for (Block& inner : node->blocks) Insert(&inner);
      nodes.push_back(node);
      for (const Value* output : node->outputs) append(output);
    }
    block->nodes = std::move(nodes);
  }

  Graph& graph_;
  const DimLimits limits_;
  std::unordered_set<const Value*> on_host_;
  std::vector<Node*> candidates_;
  std::unordered_map<const Node*, std::size_t> index_;
  std::unordered_set<const Node*> placed_;
  std::unordered_map<const Value*, Value*> others_;
  std::unordered_map<const Value*, std::vector<Node*>> copies_;
};

}  // namespace

void PlaceOnDevice(Graph* graph) {
  if (graph->device) Placement(graph).Run();
}

}  // namespace rewire::compiler
