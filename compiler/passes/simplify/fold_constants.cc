// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/simplify/fold_constants.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "rewire/compiler/emit/emit.h"
#include "rewire/compiler/ir/stock_kernels.h"
#include "rewire/vm/vm.h"

namespace rewire::compiler {
namespace {

// The memory of one node's run.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
// Constants may become so many times the model's weights: packed, converted, transposed.
constexpr std::uint64_t kWeightFactor = 4;

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

ConstantFolder::ConstantFolder(const CompileLimits& limits, std::uint64_t weight_bytes, bool for_device)
    : node_time_(limits.fold_node_time),
      time_left_(limits.fold_time),
      bytes_left_(limits.fold_bytes + kWeightFactor * weight_bytes),
      kernels_(StockKernels({.for_device = for_device})) {}

bool ConstantFolder::HasKernel(const std::string& name) const {
  return std::any_of(kernels_.sources().begin(), kernels_.sources().end(),
                     [&](const auto& source) { return static_cast<bool>(source->Find(name).function); });
}

std::optional<std::vector<HostTensor>> ConstantFolder::Fold(const Node& node) {
  const auto start = std::chrono::steady_clock::now();
  if (bytes_left_ == 0 || time_left_.count() <= 0) return std::nullopt;
  std::optional<std::vector<HostTensor>> tensors = Run(node, std::min(node_time_, time_left_));
  time_left_ -= std::chrono::steady_clock::now() - start;
  if (!tensors) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const HostTensor& tensor : *tensors) bytes += tensor.bytes.view.size();
  if (bytes > bytes_left_) return std::nullopt;
  bytes_left_ -= bytes;
  return tensors;
}

std::optional<std::vector<HostTensor>> ConstantFolder::Run(const Node& node,
                                                           std::chrono::nanoseconds time) const {
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
  VirtualMachine vm(*program, limits);
  vm.SetDeadline(std::chrono::steady_clock::now() + time);
  const Result<rewire::Value> result = vm.TryInvoke("main", Span<const rewire::Value>());
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
