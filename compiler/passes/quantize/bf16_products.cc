// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/bf16_products.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/passes/quantize/calibration_data.h"
#include "rewire/compiler/passes/quantize/compared_outputs.h"
#include "rewire/compiler/passes/quantize/quantize_products.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

Result<std::vector<OutputMovement>> Compare(const Graph& graph, const Calls& calls,
                                            const Building& building) {
  Graph whole = graph.Copy();
  whole.bf16 = false;
  Result<SampleProgram> original = SampleProgram::Make(std::move(whole), building);
  if (!original) return Forward(original);
  const Result<ComparedOutputs> outputs =
      ComparedOutputs::Make(*std::move(original), calls, graph.output_names);
  if (!outputs) return Forward(outputs);
  const Result<SampleProgram> rounded = SampleProgram::Make(graph.Copy(), building);
  if (!rounded) return Forward(rounded);
  return outputs->Movement(*rounded);
}

// A model may refuse random inputs of any size, such as indices beyond a table.
void CompareOnRandomInputs(const Graph& graph, const Building& building, CalibrationReport* report) {
  for (const std::int64_t size : {32, 64, 8, 1}) {
    const Result<Calls> calls = RandomCalls(graph, size);
    if (!calls) {
      report->unmeasured = calls.error().message();
      return;
    }
    Result<std::vector<OutputMovement>> movement = Compare(graph, *calls, building);
    if (movement) {
      report->movement = *std::move(movement);
      report->unmeasured.clear();
      return;
    }
    if (report->unmeasured.empty())
      report->unmeasured = fmt::format("it does not run with random inputs: {}", movement.error().message());
  }
}

}  // namespace

Result<CalibrationReport> UseBf16(Graph* graph, const Calibration& calibration, const Building& building,
                                  const std::function<void(const std::string&)>& progress) {
  graph->bf16 = true;
  CalibrationReport report;
  for (const FloatProduct& product : FloatProducts(*graph))
    report.products.push_back({std::string(FirstNodeOf(product.node->source)), false,
                               std::numeric_limits<double>::quiet_NaN(), ""});
  progress("measuring what bf16 does");
  if (calibration.data.empty()) {
    CompareOnRandomInputs(*graph, building, &report);
    return report;
  }
  const Result<Calls> calls = ReadCalls(*graph, calibration.data);
  if (!calls) return Forward(calls);
  Result<std::vector<OutputMovement>> movement = Compare(*graph, *calls, building);
  if (!movement) return Forward(movement);
  report.movement = *std::move(movement);
  return report;
}

void FindBf16Products(const Graph& graph, std::vector<ProductPrecision>* products) {
  // By the node of the model: whether it computes in bf16, and else the reason.
  std::map<std::string, std::string> found;
  const auto visit = [&](const Block& block, const auto& again) -> void {
    for (const Node* node : block.nodes) {
      for (const Block& inner : node->blocks) again(inner, again);
      if (node->kind != NodeKind::kKernel) continue;
      const std::string source(FirstNodeOf(node->source));
      if (node->kernel == names::kPackedWinograd)
        found.emplace(source, "Winograd's form in f32 is faster; its weights are rounded to bf16");
      if (node->kernel == names::kPackedDepthwise)
        found.emplace(source, "it is depthwise, and adds no products of several channels");
      if (node->kernel == names::kPackedMatMulBytes)
        found.emplace(source, "");  // with 16 bits, of which bf16 has 8
      for (const Value* input : node->inputs) {
        if (input != nullptr && input->type.IsTensor() && input->type.dtype == kBFloat16) found[source] = "";
      }
    }
  };
  visit(graph.main, visit);
  for (ProductPrecision& product : *products) {
    const auto at = found.find(product.node);
    product.reason = at == found.end() ? "there is no kernel of bf16 for it, or f32 is faster" : at->second;
    product.quantized = product.reason.empty();
  }
}

}  // namespace rewire::compiler
