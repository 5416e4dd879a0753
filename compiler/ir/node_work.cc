// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/node_work.h"

#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"

namespace rewire::compiler {
namespace {

using Tensors = std::vector<std::optional<WorkDims>>;

// False if a shape is not known.
bool ReadShapes(const std::vector<Value*>& values, const SizeOfDim& size, Tensors* tensors) {
  for (const Value* value : values) {
    std::optional<WorkDims>& dims = tensors->emplace_back();
    if (value == nullptr) continue;  // an argument that is left out
    if (!value->type.IsTensor() || !value->type.ranked) return false;
    dims.emplace();
    for (const DimExpr& dim : value->type.dims) {
      const std::optional<std::int64_t> known = size(dim);
      if (!known) return false;
      dims->push_back(*known);
    }
  }
  return true;
}

}  // namespace

std::optional<CallWork> WorkOf(const Graph& graph, const Node& node, const SizeOfDim& size) {
  if (node.kind != NodeKind::kKernel || graph.kernels == nullptr) return std::nullopt;
  const RewireKernelRow* row = graph.kernels->Row(node.kernel);
  if (row == nullptr) return std::nullopt;
  WorkCall call;
  if (!ReadShapes(node.inputs, size, &call.read) || !ReadShapes(node.outputs, size, &call.written))
    return std::nullopt;
  call.attributes = node.attributes;
  return WorkOf(row, graph.kernels->Work(node.kernel), call);
}

}  // namespace rewire::compiler
