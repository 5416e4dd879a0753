// SPDX-License-Identifier: Apache-2.0
//
// Runs packed convolutions, and what lies between them, with the channels last, which is twice as fast.
//
// A value that such a layer makes gets an NHWC copy (its counterpart). Nodes that can work on NHWC copies do.
// The value itself is made by a transpose only where something needs it. Blocks are handled one at a time;
// values shared between blocks keep NCHW.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/layout/image_axes.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/contract/vision.h"

namespace rewire::compiler {
namespace {

class Layout {
 public:
  explicit Layout(Graph* graph) : graph_(*graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) { RunBlock(block); });
  }

 private:
  struct NhwcCopy {
    Value* last = nullptr;  // a value that exists
    bool made = false;      // the value itself exists too
  };

  void RunBlock(Block* block) {
    copies_.clear();
    done_.clear();
    for (Node* node : block->nodes) {
      source_ = node->source;
      Rename(node);
      if (!Move(node) && !Cancel(node)) {
        MakeAll(*node);
        Add(node);
      }
    }
    for (Value*& result : block->results) {
      result = Renamed(result);
      if (result != nullptr) Make(result);
    }
    block->nodes = std::move(done_);
    done_ = {};
  }

  Value* Renamed(Value* value) const {
    const auto found = renamed_.find(value);
    return found == renamed_.end() ? value : found->second;
  }

  void Rename(Node* node) {
    for (Value*& input : node->inputs) input = Renamed(input);
    for (Node::Extent& extent : node->extents) extent.shape = Renamed(extent.shape);
    for (Block& inner : node->blocks) {
      for (Node* child : inner.nodes) Rename(child);
      for (Value*& result : inner.results) result = Renamed(result);
    }
  }

  // Removes transposes between the two layouts. A transpose of a value to NHWC is replaced by the value's
  // NHWC copy. A transpose to NCHW is made only where its result is needed. Any other transpose of a value
  // that exists only as its NHWC copy reads that copy.
  bool Cancel(Node* node) {
    if (!CanMove(*node) || node->kernel != names::kTranspose) return false;
    std::optional<Ints> perm = IntsAttribute(*node, "perm");
    if (!perm) return false;
    Value* output = node->outputs[0];
    if (const auto copy = copies_.find(node->inputs[0]); copy != copies_.end()) {
      Value* last = copy->second.last;
      if (*perm == ToLast(last)) {
        renamed_[output] = last;
        graph_.MoveSymbols({{output, last}});
        return true;
      }
      if (!copy->second.made) {
        for (std::int64_t& axis : *perm) axis = AxisOfLast(axis, last->type.rank());
        SetAttribute(node, "perm", *perm);
        node->inputs[0] = last;
      }
    }
    // The input exists from here on, so that it can be the NHWC copy of the output.
    Value* input = node->inputs[0];
    if (*perm == ToFirst(input)) {
      if (input->IsConstant()) return false;
      copies_[output] = {input, false};
      graph_.MoveSymbols(output, input, ToLast(input));
      return true;
    }
    if (*perm == ToLast(input)) copies_[input] = {output, true};
    return false;
  }

  // Everything that a node reads in its own layout, including reads in blocks inside it.
  void MakeAll(const Node& node) {
    for (const Value* input : node.inputs) Make(input);
    for (const Node::Extent& extent : node.extents) Make(extent.shape);
    for (const Block& inner : node.blocks) {
      for (const Node* child : inner.nodes) MakeAll(*child);
      for (const Value* result : inner.results) Make(result);
    }
  }

  void Make(const Value* value) {
    const auto copy = copies_.find(value);
    if (copy == copies_.end() || copy->second.made) return;
    copy->second.made = true;
    AddTranspose(copy->second.last, const_cast<Value*>(value), ToFirst(value));
  }

  void AddTranspose(Value* from, Value* to, const Ints& perm) {
    Add(NewTranspose(&graph_, from, to, perm, source_));
  }

  // A transpose of elements that stay in their order only gives them another shape.
  void Add(Node* node) {
    done_.push_back(node);
    if (node->kernel != names::kTranspose || !CanMove(*node)) return;
    const std::optional<Ints> perm = IntsAttribute(*node, "perm");
    if (!perm || !OrderStays(node->inputs[0]->type.dims, *perm)) return;
    node->kind = NodeKind::kReshape;
    node->kernel.clear();
    node->attributes.clear();
  }

  bool HasNhwcCopy(const Value* value) const { return copies_.contains(value); }

  // The value with its channels last.
  Value* Last(Value* value) {
    const auto copy = copies_.find(value);
    if (copy != copies_.end()) return copy->second.last;
    Value* last =
        graph_.NewValue(value->name, TensorOf(value->type.dtype, Permuted(value->type.dims, ToLast(value))));
    if (value->IsConstant()) {
      MoveConstant(*value, last);
      last->folded = NewTranspose(&graph_, value, last, ToLast(value), source_);
      last->producer = nullptr;
    } else {
      AddTranspose(value, last, ToLast(value));
    }
    copies_[value] = {last, true};
    return last;
  }

  // The node makes the NHWC copies of its outputs from now on.
  void MakeNhwcCopy(Node* node) {
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      Value* value = node->outputs[i];
      Value* last = graph_.NewValue(value->name,
                                    TensorOf(value->type.dtype, Permuted(value->type.dims, ToLast(value))));
      last->model_name = value->model_name;
      last->channels_last = true;
      last->producer = node;
      node->outputs[i] = last;
      node->extents[i].dims = Permuted(node->extents[i].dims, ToLast(value));
      graph_.MoveSymbols(value, last, ToLast(value));
      copies_[value] = {last, false};
    }
    done_.push_back(node);
  }

  // A plain call whose results' sizes need no other value.
  static bool CanRewrite(const Node& node) {
    return node.kind == NodeKind::kKernel && !node.outputs.empty() && !node.returns && node.flags == 0 &&
           node.extents.size() == node.outputs.size() &&
           (node.outputs.size() == 1 || node.kernel == names::kSplit) &&
           std::none_of(node.extents.begin(), node.extents.end(),
                        [](const Node::Extent& extent) { return extent.shape != nullptr; });
  }

  static bool MakesImages(const Node& node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [](const Value* output) { return output != nullptr && IsImage(output); });
  }

  static bool CanMove(const Node& node) { return CanRewrite(node) && MakesImages(node); }

  // Rewrites the node to work with the channels last, if it can and it is worthwhile.
  bool Move(Node* node) {
    if (node->kind == NodeKind::kReshape) return MoveReshape(node);
    if (!CanRewrite(*node)) return false;
    if (names::IsReduction(node->kernel)) return MoveReduction(node);
    if (!MakesImages(*node)) return false;
    if (node->kernel == names::kOneDnnConv) return MoveConv(node);
    if (IsElementwise(graph_, *node, 1) && HasNhwcCopy(node->inputs[0])) {
      node->inputs[0] = Last(node->inputs[0]);
      MakeNhwcCopy(node);
      return true;
    }
    if (IsElementwise(graph_, *node, 2)) return MoveBinary(node);
    if (node->kernel == names::kConcat) return MoveConcat(node);
    if (node->kernel == names::kSplit) return MoveSplit(node);
    if (node->kernel == names::kSlice) return MoveSlice(node);
    if (node->kernel == names::kPad) return MovePad(node);
    if (node->kernel == names::kResize) return MoveResize(node);
    if (node->kernel == names::kQuantizeLinear || node->kernel == names::kDequantizeLinear) {
      return MoveQuantization(node);
    }
    if (node->kernel == names::kMapBytes) return MoveMap(node);
    if (node->kernel == names::kRequantize) return MoveRequantize(node);
    if (HasLayout(graph_, *node)) return MoveWithLayout(node);
    return false;
  }

  bool MoveConv(Node* node) {
    Node* packing = node->inputs[1]->producer;
    if (packing == nullptr || packing->kernel != names::kOneDnnPackConv) return false;
    SetAttribute(packing, "layout", std::string("NHWC"));
    SetAttribute(node, "layout", std::string("NHWC"));
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  bool MoveBinary(Node* node) {
    if (!HasNhwcCopy(node->inputs[0]) && !HasNhwcCopy(node->inputs[1])) return false;
    for (const Value* input : node->inputs) {
      const bool image = IsImage(input) && input->type.rank() == node->outputs[0]->type.rank();
      if (!image && !ScalarOf(input) && !IsChannels(input, node->outputs[0]->type.rank())) return false;
    }
    for (Value*& input : node->inputs) {
      if (ScalarOf(input)) continue;
      input = IsChannels(input, node->outputs[0]->type.rank()) ? AsVector(input) : Last(input);
    }
    MakeNhwcCopy(node);
    return true;
  }

  // The elements of a constant under one axis.
  Value* AsVector(Value* value) { return graph_.NewView(value->name, value, {value->constant->shape[0]}); }

  // A constant [C, 1, ...] with the rank of an image, without the batch axis.
  static bool IsChannels(const Value* value, int rank) {
    if (!value->IsConstant()) return false;
    const Ints& dims = value->constant->shape;
    return static_cast<int>(dims.size()) == rank - 1 &&
           std::all_of(dims.begin() + 1, dims.end(), [](std::int64_t dim) { return dim == 1; });
  }

  bool MoveConcat(Node* node) {
    if (!std::all_of(node->inputs.begin(), node->inputs.end(),
                     [&](Value* input) { return HasNhwcCopy(input); })) {
      return false;
    }
    for (Value*& input : node->inputs) input = Last(input);
    SetAttribute(
        node, "axis",
        AxisOfLast(AttributesOf<contract::ConcatAttributes>(*node).axis, node->outputs[0]->type.rank()));
    MakeNhwcCopy(node);
    return true;
  }

  // Squeeze and Unsqueeze of spatial axes. Exporters write convolutions of one axis as those of two.
  bool MoveReshape(Node* node) {
    const bool plain = node->inputs.size() == 1 && node->extents.size() == 1 &&
                       node->extents[0].shape == nullptr && IsImage(node->outputs[0]);
    if (!plain || !HasNhwcCopy(node->inputs[0])) return false;
    if (ShapeText(WithoutOnes(node->inputs[0])) != ShapeText(WithoutOnes(node->outputs[0]))) return false;
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  // The dimensions of an image without spatial axes of size 1.
  static Shape WithoutOnes(const Value* image) {
    Shape dims;
    for (std::size_t i = 0; i < image->type.dims.size(); ++i) {
      if (i < 2 || !image->type.dims[i].Is(1)) dims.push_back(image->type.dims[i]);
    }
    return dims;
  }

  bool MoveSplit(Node* node) {
    if (node->inputs.size() != 1 || !HasNhwcCopy(node->inputs[0])) return false;
    SetAttribute(
        node, "axis",
        AxisOfLast(AttributesOf<contract::SplitAttributes>(*node).axis, node->inputs[0]->type.rank()));
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  bool MoveSlice(Node* node) {
    const std::optional<Ints> starts = IntsAttribute(*node, "starts");
    if (node->inputs.size() != 1 || !HasNhwcCopy(node->inputs[0]) || !starts) return false;
    const std::optional<Ints> given = IntsAttribute(*node, "axes");
    Ints axes;
    for (std::size_t i = 0; i < starts->size(); ++i) {
      const std::int64_t axis = given ? (*given)[i] : static_cast<std::int64_t>(i);
      axes.push_back(AxisOfLast(axis, node->inputs[0]->type.rank()));
    }
    SetAttribute(node, "axes", axes);
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  // With zeros, or with one value.
  bool MovePad(Node* node) {
    const std::optional<Ints> pads = IntsAttribute(*node, "pads");
    const auto rank = static_cast<std::size_t>(node->inputs[0]->type.rank());
    if (!HasNhwcCopy(node->inputs[0]) || !pads || pads->size() != 2 * rank) return false;
    Ints moved;
    for (const std::size_t side : {std::size_t{0}, rank}) {
      for (const std::int64_t axis : ToLast(node->inputs[0]))
        moved.push_back((*pads)[side + static_cast<std::size_t>(axis)]);
    }
    SetAttribute(node, "pads", moved);
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  // A reduction. Without its axes the result is an image no longer. It can be as the model has it if the axes
  // that stay have one order in both layouts: the channels go, or all spatial axes.
  bool MoveReduction(Node* node) {
    const std::optional<Ints> axes = IntsAttribute(*node, "axes");
    if (node->inputs.size() != 1 || !axes || axes->empty() || !HasNhwcCopy(node->inputs[0])) return false;
    const std::int64_t rank = node->inputs[0]->type.rank();
    Ints moved;
    for (const std::int64_t axis : *axes) moved.push_back(AxisOfLast(axis, rank));
    std::sort(moved.begin(), moved.end());
    const bool image = AttributesOf<contract::ReduceAttributes>(*node).keepdims;
    const auto spatial = std::count_if(moved.begin(), moved.end(),
                                       [&](std::int64_t axis) { return axis != 0 && axis != rank - 1; });
    if (!image && moved.back() != rank - 1 && spatial != rank - 2) return false;
    node->inputs[0] = Last(node->inputs[0]);
    SetAttribute(node, "axes", moved);
    if (image)
      MakeNhwcCopy(node);
    else
      done_.push_back(node);
    return true;
  }

  // By constant scales, without a region.
  bool MoveResize(Node* node) {
    if (!HasNhwcCopy(node->inputs[0]) || FindAttribute(*node, "axes") != nullptr ||
        node->outputs[0]->type.rank() != 4) {
      return false;
    }
    if (node->inputs.size() == 1) {  // The shapes say how much.
      node->inputs[0] = Last(node->inputs[0]);
      MakeNhwcCopy(node);
      return true;
    }
    if (node->inputs.size() != 3) return false;
    const float* scales = FloatsOf(node->inputs[2]);
    const Value* region = node->inputs[1];
    if (scales == nullptr || region == nullptr || !region->type.ranked || region->type.rank() != 1 ||
        !region->type.dims[0].Is(0) || node->inputs[2]->constant->shape != Ints{4}) {
      return false;
    }
    node->inputs[0] = Last(node->inputs[0]);
    node->inputs[2] =
        NewFloats(&graph_, node->inputs[2]->name, {4}, {scales[0], scales[2], scales[3], scales[1]});
    MakeNhwcCopy(node);
    return true;
  }

  // By one scale for all.
  bool MoveQuantization(Node* node) {
    if (!HasNhwcCopy(node->inputs[0]) || !ScalarOf(node->inputs[1]) || node->inputs[1]->type.rank() > 1)
      return false;
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  // By one table for all.
  bool MoveMap(Node* node) {
    if (!HasNhwcCopy(node->inputs[0])) return false;
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  // With a scale for each channel or one for all.
  bool MoveRequantize(Node* node) {
    if (!HasNhwcCopy(node->inputs[0]) || AttributesOf<contract::RequantizeAttributes>(*node).axis != 1)
      return false;
    node->inputs[0] = Last(node->inputs[0]);
    SetAttribute(node, "axis", std::int64_t{node->outputs[0]->type.rank() - 1});
    MakeNhwcCopy(node);
    return true;
  }

  // A pool or a normalization, whose other inputs are vectors.
  bool MoveWithLayout(Node* node) {
    if (!HasNhwcCopy(node->inputs[0])) return false;
    SetAttribute(node, "layout", std::string("NHWC"));
    node->inputs[0] = Last(node->inputs[0]);
    MakeNhwcCopy(node);
    return true;
  }

  Graph& graph_;
  std::unordered_map<const Value*, NhwcCopy> copies_;
  std::unordered_map<const Value*, Value*> renamed_;
  std::vector<Node*> done_;
  std::string source_;
};

}  // namespace

void ChannelsLast(Graph* graph) { Layout(graph).Run(); }

}  // namespace rewire::compiler
