// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/fold_constants.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/emit/emit.h"
#include "vm/vm.h"

namespace rewire::compiler {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

std::optional<HostTensor> ToHostTensor(const rewire::Value& value) {
  if (value.kind() != ValueKind::kTensor) return std::nullopt;
  auto tensor = std::make_shared<Tensor>(value.tensor());
  HostTensor result;
  result.dtype = tensor->dtype();
  result.shape.assign(tensor->shape().begin(), tensor->shape().end());
  const TensorView view = tensor->view();
  result.bytes = {{static_cast<const std::byte*>(view.data()), view.bytes()}, tensor};
  return result;
}

}  // namespace

ConstantFolder::ConstantFolder() {
  // Missing libraries show as missing kernels.
  (void)kernels_.AddLibrary("librewire_kernels_cpu.so");
}

bool ConstantFolder::HasKernel(const std::string& name) const {
  return std::any_of(kernels_.sources().begin(), kernels_.sources().end(),
                     [&](const auto& source) { return static_cast<bool>(source->Find(name).function); });
}

std::optional<std::vector<HostTensor>> ConstantFolder::Fold(const Node& node) const {
  Graph graph;
  graph.main.nodes.push_back(const_cast<Node*>(&node));
  graph.main.results = node.outputs;
  for (const Value* output : node.outputs) {
    if (!output->type.IsTensor()) return std::nullopt;
    graph.output_names.push_back(std::to_string(graph.output_names.size()));
  }
  Result<Module> module = EmitModule(graph);
  if (!module) return std::nullopt;
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return std::nullopt;
  LinkOptions options;
  options.kernels = kernels_;
  const Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) return std::nullopt;
  Limits limits;
  limits.bytes = kMaxBytes;
  const Result<rewire::Value> result = program->TryRun("main", Span<const rewire::Value>(), limits);
  if (!result) return std::nullopt;
  std::vector<HostTensor> tensors;
  for (std::uint32_t i = 0; i < node.outputs.size(); ++i) {
    std::optional<HostTensor> tensor = ToHostTensor(node.outputs.size() == 1 ? *result : result->field(i));
    if (!tensor) return std::nullopt;
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace rewire::compiler
