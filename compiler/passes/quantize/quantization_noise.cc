// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/quantization_noise.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

Value* AddCall(Graph* graph, const char* kernel, std::vector<Attribute> attributes,
               std::vector<Value*> inputs, Shape dims) {
  Node* node = graph->NewNode(NodeKind::kKernel);
  node->kernel = kernel;
  node->attributes = std::move(attributes);
  node->inputs = std::move(inputs);
  Value* output = graph->NewValue(node->inputs[0]->name, TensorOf(kFloat32, dims));
  output->producer = node;
  node->outputs.push_back(output);
  node->extents.push_back({std::move(dims), nullptr});
  graph->main.nodes.push_back(node);
  return output;
}

// One element.
Value* SumOfSquares(Graph* graph, Value* x) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(x->type.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return AddCall(graph, names::kReduceSumSquare, {{"axes", axes}, {"keepdims", std::int64_t{0}}}, {x}, {});
}

// The graph with two results for each product with limits: the squares of its output and of the differences.
Graph Measuring(const Graph& graph, const ProductLimits& limits) {
  Graph measuring = graph.Copy();
  const std::vector<FloatProduct> products = FloatProducts(measuring);
  const std::vector<Value*> copied = QuantizeBeside(&measuring, products, limits);
  measuring.main.results.clear();
  measuring.output_names.clear();
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (copied[i] == nullptr) continue;
    Value* output = products[i].node->outputs[0];
    Value* moved = AddCall(&measuring, names::kSub, {}, {copied[i], output}, output->type.dims);
    for (Value* of : {output, moved}) {
      measuring.main.results.push_back(SumOfSquares(&measuring, of));
      measuring.output_names.push_back(fmt::format("{}", measuring.output_names.size()));
    }
  }
  RemoveDeadCode(&measuring);
  return measuring;
}

}  // namespace

Result<std::vector<double>> NoiseOfProducts(const Graph& graph, const ProductLimits& limits,
                                            const Calls& calls, const Building& building) {
  Graph measuring = Measuring(graph, limits);
  std::vector<double> sums(measuring.main.results.size(), 0);
  std::vector<double> noise(limits.size(), std::numeric_limits<double>::quiet_NaN());
  if (sums.empty()) return noise;
  const Result<SampleProgram> program = SampleProgram::Make(std::move(measuring), building);
  if (!program) return Forward(program);
  for (const std::vector<rewire::Value>& inputs : calls) {
    const Result<std::vector<rewire::Value>> squares = program->Run(inputs);
    if (!squares) return Forward(squares);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += double{SampleElements((*squares)[i])[0]};
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (!limits[i]) continue;
    const double all = sums[at], moved = sums[at + 1];
    at += 2;
    noise[i] = moved == 0 ? 0 : std::sqrt(moved / all);
    if (!std::isfinite(noise[i])) noise[i] = std::numeric_limits<double>::infinity();
  }
  return noise;
}

}  // namespace rewire::compiler
