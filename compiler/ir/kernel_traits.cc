// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/kernel_traits.h"

#include <utility>

#include "rewire/compiler/ir/call_check.h"

namespace rewire::compiler {
namespace {

const RewireKernelRow* RowOf(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::kKernel || graph.kernels == nullptr) return nullptr;
  return graph.kernels->Row(node.kernel);
}

bool Has(const Graph& graph, const Node& node, std::uint32_t trait) {
  const RewireKernelRow* row = RowOf(graph, node);
  return row != nullptr && (row->traits & trait) != 0;
}

}  // namespace

KernelTraits::KernelTraits(KernelSet kernels) : kernels_(std::move(kernels)) {}

const PackedFunction& KernelTraits::Function(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = functions_.try_emplace(name);
  const auto& sources = kernels_.sources();
  // The source that was added last is asked first, as KernelSet::Resolve does.
  for (std::size_t i = sources.size(); is_new && !place->second && i-- > 0;)
    place->second = sources[i]->Find(name).function;
  return place->second;
}

const RewireKernelRow* KernelTraits::Row(const std::string& name) const { return Function(name).row; }

const RewireKernelWork* KernelTraits::Work(const std::string& name) const { return Function(name).work; }

Status KernelTraits::Check(const Node& node, bool one_dtype) const {
  if (!Function(node.kernel)) return {};
  KernelImport import;
  import.name = node.kernel;
  import.attributes = node.attributes;
  import.flags = node.flags;
  const Result<PackedFunction> kernel = kernels_.Resolve(import);
  if (kernel) return kernel->row == nullptr ? Status() : CheckCall(node, *kernel->row, one_dtype);
  return Fail(StatusCode::kUnsupported, kernel.error().message());
}

bool IsPure(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::kKernel) return true;
  const RewireKernelRow* row = RowOf(graph, node);
  return row != nullptr && (row->traits & REWIRE_KERNEL_IMPURE) == 0;
}

bool IsElementwise(const Graph& graph, const Node& node, std::size_t inputs) {
  return node.inputs.size() == inputs && node.outputs.size() == 1 &&
         Has(graph, node, REWIRE_KERNEL_ELEMENTWISE);
}

bool Selects(const Graph& graph, const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 && Has(graph, node, REWIRE_KERNEL_SELECTS);
}

bool HasLayout(const Graph& graph, const Node& node) { return Has(graph, node, REWIRE_KERNEL_LAYOUT); }

std::uint32_t InputsToWriteOver(const Graph& graph, const Node& node) {
  const RewireKernelRow* row = RowOf(graph, node);
  if (row == nullptr || node.returns || node.outputs.size() != 1) return 0;
  for (std::uint32_t i = 0; i < row->argument_count; ++i) {
    const RewireKernelArgument& argument = row->arguments[i];
    if ((argument.flags & REWIRE_ARGUMENT_WRITTEN) == 0) continue;
    const bool parts = (argument.flags & (REWIRE_ARGUMENT_AROUND | REWIRE_ARGUMENT_WITHIN)) != 0;
    return parts ? 0 : argument.over;
  }
  return 0;
}

}  // namespace rewire::compiler
