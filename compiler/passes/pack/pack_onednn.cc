// SPDX-License-Identifier: Apache-2.0
//
// Turns convolutions of groups with constant weights into calls of oneDNN (docs/kernels-onednn.md). `__init`
// packs the weights once. The kernel also applies an activation that follows.
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

class OneDnnPacking : public Packing {
 public:
  using Packing::Packing;

  void Run() {
    ForEachKernel([&](Node* node) {
      if (node->kernel == names::kConv) PackConv(node);
    });
  }

 private:
  // Asked only when a convolution could use it: oneDNN is large, and few models have such convolutions.
  bool HasLibrary() {
    if (!has_library_) has_library_ = static_cast<bool>(KernelSet().AddLibrary(names::kOneDnnLibrary));
    return *has_library_;
  }

  // The weights as `__init` packs them.
  Value* Packed(const std::string& kernel, Value* weights, std::vector<Attribute> attributes) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs.push_back(weights);
    node->returns = true;
    node->source = weights->name;
    const DimExpr open = DimExpr::Symbol(graph_.FreshSymbol("bytes"));
    Value* packed = graph_.NewValue(weights->name + ".packed", TensorOf(kUInt8, {open}));
    packed->producer = node;
    node->outputs.push_back(packed);
    graph_.init.nodes.push_back(node);
    return packed;
  }

  // Turns `node` into the packed kernel and lets it do what follows.
  void Become(Node* node, const std::string& kernel, Value* packed, Value* bias,
              std::vector<Attribute> attributes) {
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs = {node->inputs[0], packed, bias};
    TakeActivation(&edit_, node);
  }

  // The spatial sizes that packing is tuned for, where they are known.
  static Ints SizesOf(const Value* x) {
    Ints sizes;
    for (std::size_t i = 2; i < x->type.dims.size(); ++i) {
      const std::optional<std::int64_t> size = x->type.dims[i].constant();
      if (!size) return {};
      sizes.push_back(*size);
    }
    return sizes;
  }

  void PackConv(Node* node) {
    Value* weights = node->inputs[1];
    if (!IsFloats(weights) || !(node->inputs[0]->type.dtype == kFloat32)) return;
    const Attribute* auto_pad = FindAttribute(*node, "auto_pad");
    if (auto_pad != nullptr && std::get<std::string>(auto_pad->value) != "NOTSET") return;
    const Ints& dims = weights->constant->shape;
    // Groups that do not divide the weights are an error of the run, if it comes to them.
    const std::int64_t group = IntAttribute(*node, "group", 1);
    if (dims.empty() || group < 1 || dims[0] % group != 0) return;
    // One axis gains nothing; and packing is for what is large.
    if (dims.size() != 4 || ProductOf(ShapeOfInts(dims)).constant().value_or(0) < 64) return;
    if (!HasLibrary()) return;
    std::vector<Attribute> attributes = {{"weights", dims}};
    for (const char* name : {"group", "strides", "dilations", "pads"}) {
      if (const Attribute* given = FindAttribute(*node, name)) attributes.push_back(*given);
    }
    if (Ints sizes = SizesOf(node->inputs[0]); !sizes.empty()) attributes.push_back({"sizes", sizes});
    const bool has_bias = node->inputs.size() > 2 && node->inputs[2] != nullptr;
    Value* bias = has_bias ? node->inputs[2] : ZeroBias(&graph_, weights->name, dims[0]);
    Value* packed = Packed(names::kOneDnnPackConv, weights, attributes);
    Become(node, names::kOneDnnConv, packed, bias, std::move(attributes));
  }

  std::optional<bool> has_library_;
};

}  // namespace

void PackOneDnn(Graph* graph) { OneDnnPacking(graph).Run(); }

}  // namespace rewire::compiler
