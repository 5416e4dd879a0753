// SPDX-License-Identifier: Apache-2.0
//
// Decides which nodes run on the device that the model is compiled for, and inserts the copies between it and
// the host.
//
// A node can run there if the device has a kernel for it that takes its attributes, dtypes and ranks.
// Integers that are shapes or sizes stay on the host, and so does what the device's kernel reads there. What
// varies with an input's data is a size only if the host reads it, because a run can be recorded whose host
// computes from shapes and constants alone (vm/run/recorder.h). Nodes that hang together on the device
// must have enough work to be worth the copies and launches. Nodes in blocks are placed as others are. Values
// that If gives and Loop carries lie where fewest copies are needed (sides.h). Conditions, trip counts, and
// the inputs and outputs of `main` stay on the host.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/dim_limits.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/ir/node_work.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/passes/place/sides.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

// Kernels of devices take at most so much (kernels/device/code/arguments.h).
constexpr int kMostRank = 8;
// An unknown dimension is taken to have this size when work is compared.
constexpr std::int64_t kUsualSize = 64;
// Products that take as long as one element of other kernels.
constexpr double kProductsOfElement = 16;

bool IsFloat(DLDataType dtype) { return dtype.code == kFloat; }

// Whether the set has bit i. A node may have more inputs than a set has bits.
bool Holds(std::uint32_t set, std::size_t i) { return i < 32 && (set >> i & 1) != 0; }

class Placement {
 public:
  explicit Placement(Graph* graph) : graph_(*graph), limits_(*graph) {}

  void Run() {
    FindHostValues(graph_.main);
    FindVarying(graph_.main);
    needed_on_host_ = on_host_;
    Collect(graph_.main, false);
    LeaveOutLittleWork();
    slots_on_device_ = SlotsOnDevice(graph_, placed_, on_host_);
    MarkValues(graph_.main);
    InsertCopies(&graph_.main);
  }

 private:
  // Values that instructions read on the host.
  void FindHostValues(const Block& block) {
    for (const Node* node : block.nodes) {
      for (const Node::Extent& extent : node->extents) Host(extent.shape);
      if (node->kind == NodeKind::kReshape && node->inputs.size() > 1) Host(node->inputs[1]);
      if (node->kind == NodeKind::kIf || node->kind == NodeKind::kLoop) Host(node->inputs[0]);
      if (node->kind == NodeKind::kKernel && names::IsStock(node->kernel)) {
        const std::uint32_t host = ReadOnHost(*node);
        for (std::size_t i = 0; i < node->inputs.size(); ++i) {
          if (Holds(host, i)) Host(node->inputs[i]);
        }
      }
      if (node->kind == NodeKind::kLoop) {
        Host(node->inputs[1]);
        Host(node->blocks[0].results[0]);
      }
      for (const Block& inner : node->blocks) FindHostValues(inner);
    }
  }
  void Host(const Value* value) {
    if (value != nullptr) on_host_.insert(value);
  }

  // Values that do not follow from shapes and constants alone.
  void FindVarying(const Block& block) {
    varying_.insert(block.parameters.begin(), block.parameters.end());
    for (const Node* node : block.nodes) {
      for (const Block& inner : node->blocks) FindVarying(inner);
      if (node->kind == NodeKind::kShapeOf || node->kind == NodeKind::kDims) continue;
      if (!node->blocks.empty() || !IsPure(graph_, *node) || Varies(node->inputs)) {
        varying_.insert(node->outputs.begin(), node->outputs.end());
      }
    }
  }
  bool Varies(const std::vector<Value*>& values) const {
    return std::any_of(values.begin(), values.end(),
                       [&](const Value* value) { return varying_.contains(value); });
  }

  // The inputs (bit i for input i) that the device's kernel for the node takes in memory of the host. Kernels
  // with lists have none.
  std::uint32_t ReadOnHost(const Node& node) const {
    const RewireKernelRow* row = graph_.kernels->Row(names::OnDevice(node.kernel));
    std::uint32_t host = 0;
    for (std::uint32_t i = 0; row != nullptr && i < row->argument_count; ++i) {
      if ((row->arguments[i].flags & REWIRE_ARGUMENT_ON_HOST) != 0) host |= std::uint32_t{1} << i;
    }
    return host;
  }

  // A short list of integers may be a shape, or an index that the host computes with. Integers of 8 bits are
  // none.
  static bool IsShape(const Value& value) {
    const DLDataType dtype = value.type.dtype;
    const bool counts = !IsFloat(dtype) && !(dtype == kInt8) && !(dtype == kUInt8);
    return counts && (value.elements || value.type.rank() <= 1);
  }

  bool AllNeededOnHost(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](const Value* output) { return needed_on_host_.contains(output); });
  }

  // Null if the device can run the kernel that the node calls. What reads its outputs has been asked before.
  const char* WhyOnHost(const Node& node, bool in_loop) const {
    if (node.returns || node.flags != 0 || node.inputs.empty() || !names::IsStock(node.kernel)) {
      return "it makes values, or takes lists or texts";
    }
    for (const std::vector<Value*>* list : {&node.inputs, &node.outputs}) {
      for (const Value* value : *list) {
        const bool tensor = value != nullptr && value->type.IsTensor() && value->type.ranked;
        if (!tensor || value->type.rank() > kMostRank)
          return "a tensor is missing, or of more than 8 dimensions";
      }
    }
    // A loop's integers count and choose, so they are left to the host.
    const bool fixed = in_loop || !Varies(node.inputs);
    const bool integers = !AnyFloat(node.inputs);
    const bool shapes = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Value* output) {
      if (!IsShape(*output)) return false;
      return on_host_.contains(output) || (integers && (fixed || needed_on_host_.contains(output)));
    });
    if (shapes || (!Varies(node.inputs) && AllNeededOnHost(node))) {
      return "shapes and sizes, which the host reads";
    }
    if (node.kernel == names::kCast && integers && !AnyFloat(node.outputs) &&
        (fixed || AllNeededOnHost(node))) {
      return "integers and bools, which sizes and conditions depend on";
    }
    // The device has one zero for a vector, the CPU may have several.
    if (node.kernel == names::kMatMulInteger &&
        (node.inputs[0]->type.rank() == 1 || node.inputs[1]->type.rank() == 1)) {
      return "the device's kernel takes other dtypes or attributes";
    }
    Node moved = node;
    moved.kernel = names::OnDevice(node.kernel);
    // NCCL exchanges memory of CUDA's devices alone.
    const bool exchanges = names::IsCollective(node.kernel) && graph_.device->type != kDLCUDA;
    if (exchanges || graph_.kernels->Row(moved.kernel) == nullptr) return "the device has no such kernel";
    return graph_.kernels->Check(moved) ? nullptr : "the device's kernel takes other dtypes or attributes";
  }
  static bool AnyFloat(const std::vector<Value*>& values) {
    return std::any_of(values.begin(), values.end(),
                       [](const Value* value) { return IsFloat(value->type.dtype); });
  }

  // Readers before what they read.
  void Collect(const Block& block, bool in_loop) {
    for (std::size_t i = block.nodes.size(); i-- > 0;) {
      Node* node = block.nodes[i];
      for (const Slot& slot : SlotsOf(node)) {
        for (Value* const* source : slot.sources) {
          // Real numbers may lie on either side (sides.h).
          if (!IsFloat((*source)->type.dtype)) needed_on_host_.insert(*source);
        }
      }
      for (const Block& inner : node->blocks) Collect(inner, in_loop || node->kind == NodeKind::kLoop);
      if (node->kind == NodeKind::kReshape && needed_on_host_.contains(node->outputs[0])) {
        needed_on_host_.insert(node->inputs[0]);
      }
      if (node->kind != NodeKind::kKernel) continue;
      node->why_on_host = WhyOnHost(*node, in_loop);
      if (node->why_on_host != nullptr) {
        needed_on_host_.insert(node->inputs.begin(), node->inputs.end());
        continue;
      }
      index_[node] = candidates_.size();
      candidates_.push_back(node);
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

  // Elements that are written, or as many as take the time of the node's products.
  double ElementsComputed(const Node& node) const {
    double written = 0;
    for (const Value* output : node.outputs) written += static_cast<double>(SizeOf(output->type.dims));
    const std::optional<CallWork> work =
        WorkOf(graph_, node, [this](const DimExpr& dim) { return SizeOf({dim}); });
    return work ? std::max(written, work->products / kProductsOfElement) : written;
  }

  // Nodes that pass values to each other on the device stay or go together, also if the values go through an
  // If or a Loop.
  void LeaveOutLittleWork() {
    group_.resize(candidates_.size());
    std::iota(group_.begin(), group_.end(), std::size_t{0});
    Join(graph_.main);
    std::vector<double> work(group_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) work[RootOf(i)] += ElementsComputed(*candidates_[i]);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (work[RootOf(i)] >= static_cast<double>(graph_.device->least_work)) {
        placed_.insert(candidates_[i]);
      } else {
        candidates_[i]->why_on_host = "too little work for launches and copies";
      }
    }
  }
  std::size_t RootOf(std::size_t i) {
    while (group_[i] != i) i = group_[i] = group_[group_[i]];
    return i;
  }
  // Joins the group with that of the value, if the value has one.
  void JoinWith(std::size_t i, const Value* value) {
    if (const auto found = group_of_.find(value); found != group_of_.end()) {
      group_[RootOf(i)] = RootOf(found->second);
    }
  }
  void Join(const Block& block) {
    for (Node* node : block.nodes) {
      const std::vector<Slot> slots = SlotsOf(node);
      for (const Slot& slot : slots) {
        if (!slot.output->type.IsTensor()) continue;
        group_of_[slot.output] = group_.size();
        if (slot.parameter != nullptr) group_of_[slot.parameter] = group_.size();
        group_.push_back(group_.size());
      }
      for (const Block& inner : node->blocks) Join(inner);
      for (const Slot& slot : slots) {
        const auto found = group_of_.find(slot.output);
        if (found == group_of_.end()) continue;
        for (Value* const* source : slot.sources) JoinWith(found->second, *source);
      }
      if (node->kind == NodeKind::kReshape) {
        if (const auto found = group_of_.find(node->inputs[0]); found != group_of_.end()) {
          group_of_.emplace(node->outputs[0], found->second);
        }
      }
      const auto candidate = index_.find(node);
      if (candidate == index_.end()) continue;
      const std::uint32_t host = ReadOnHost(*node);
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        if (!Holds(host, i)) JoinWith(candidate->second, node->inputs[i]);
      }
      for (const Value* output : node->outputs) group_of_[output] = candidate->second;
    }
  }

  void MarkValues(Block& block) {
    for (Node* node : block.nodes) {
      if (placed_.contains(node)) {
        read_on_host_[node] = ReadOnHost(*node);
        node->kernel = names::OnDevice(node->kernel);
        for (Value* output : node->outputs) output->on_device = true;
      } else if (node->kind == NodeKind::kReshape) {
        node->outputs[0]->on_device = node->inputs[0]->on_device;
      }
      for (const Slot& slot : SlotsOf(node)) {
        if (!slots_on_device_.contains(slot.output)) continue;
        slot.output->on_device = true;
        if (slot.parameter != nullptr) slot.parameter->on_device = true;
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
      const std::vector<Slot> slots = SlotsOf(node);
      for (const Slot& slot : slots) {
        for (Value** source : slot.sources) *source = On(slot.output->on_device, *source);
      }
      const bool device = placed_.contains(node);
      const bool view = node->kind == NodeKind::kReshape || node->kind == NodeKind::kShapeOf;
      const std::size_t end = node->kind == NodeKind::kLoop ? 2 : node->inputs.size();
      // The node has the name of the device's kernel by now.
      const std::uint32_t host = device ? read_on_host_.at(node) : 0;
      for (std::size_t i = view ? 1 : 0; i < end; ++i) {
        node->inputs[i] = On(device && !Holds(host, i), node->inputs[i]);
      }
      for (Node::Extent& extent : node->extents) extent.shape = On(false, extent.shape);
      for (Block& inner : node->blocks) Redirect(&inner);
      if (node->kind == NodeKind::kLoop) {
        Value*& condition = node->blocks[0].results[0];
        condition = On(false, condition);
      }
    }
  }

  void InsertCopies(Block* block) {
    Redirect(block);
    for (Value*& result : block->results) result = On(false, result);
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
  std::unordered_set<const Value*> on_host_;         // what instructions read
  std::unordered_set<const Value*> needed_on_host_;  // that, and what nodes read that stay on the host
  std::unordered_set<const Value*> varying_;
  std::vector<Node*> candidates_;
  std::unordered_map<const Node*, std::size_t> index_;
  std::vector<std::size_t> group_;  // of candidates, then of slots: another one of the group, or itself
  std::unordered_map<const Value*, std::size_t> group_of_;
  std::unordered_set<const Node*> placed_;
  std::unordered_map<const Node*, std::uint32_t> read_on_host_;  // of placed nodes
  std::unordered_set<const Value*> slots_on_device_;
  std::unordered_map<const Value*, Value*> others_;
  std::unordered_map<const Value*, std::vector<Node*>> copies_;
};

}  // namespace

void Place(Graph* graph) {
  if (graph->device) Placement(graph).Run();
}

}  // namespace rewire::compiler
