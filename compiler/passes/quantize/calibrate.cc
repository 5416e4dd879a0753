// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/compiler/passes/quantize/calibration_data.h"
#include "rewire/compiler/passes/quantize/compared_outputs.h"
#include "rewire/compiler/passes/quantize/float_products_search.h"
#include "rewire/compiler/passes/quantize/quantization_noise.h"
#include "rewire/compiler/passes/quantize/quantize_products.h"
#include "rewire/compiler/passes/quantize/ranges_of_products.h"
#include "rewire/executable_format/names/source_note.h"

namespace rewire::compiler {
namespace {

// "conv1" of "Conv 'conv1'".
std::string NameIn(std::string_view source) {
  const std::size_t first = source.find('\'');
  if (first == std::string::npos || source.back() != '\'') return std::string(source);
  return std::string(source.substr(first + 1, source.size() - first - 2));
}

Status KeepFloat(const std::set<std::string>& names, std::vector<FloatProduct>* products) {
  std::vector<std::string> known;
  for (const FloatProduct& product : *products) known.push_back(NameIn(FirstNodeOf(product.node->source)));
  for (const std::string& name : names) {
    bool found = false;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i] != name) continue;
      found = true;
      if ((*products)[i].reason.empty()) (*products)[i].reason = "it is to stay float";
    }
    if (!found) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("no node with constant weights is called \"{}\"{}", name,
                              KnownNames("nodes", name, {known.data(), known.size()})));
    }
  }
  return {};
}

}  // namespace

Result<CalibrationReport> QuantizeBySamples(Graph* graph, const Calibration& calibration,
                                            const Building& building,
                                            const std::function<void(const std::string&)>& progress) {
  if (!(calibration.max_error >= 0)) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("the largest error is {}, expected 0 or more", calibration.max_error));
  }
  const Result<Calls> calls = ReadCalls(*graph, calibration.data);
  if (!calls) return Forward(calls);
  std::vector<FloatProduct> products = FloatProducts(*graph);
  if (Status kept = KeepFloat(calibration.keep_float, &products); !kept) return Forward(kept);

  progress("calibrating");
  Result<ProductRanges> ranges = RangesOfProducts(*graph, products, calibration.method, *calls, building);
  if (!ranges) return Forward(ranges);
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i].reason.empty() && !ranges->limits[i])
      products[i].reason = "what it reads is always 0 in the samples";
  }
  progress("measuring the noise of 8 bits");
  const Result<std::vector<double>> noise = NoiseOfProducts(*graph, ranges->limits, *calls, building);
  if (!noise) return Forward(noise);
  Result<SampleProgram> original = SampleProgram::Make(graph->Copy(), building);
  if (!original) return Forward(original);
  const Result<ComparedOutputs> outputs =
      ComparedOutputs::Make(*std::move(original), *calls, graph->output_names);
  if (!outputs) return Forward(outputs);
  const FloatProductsSearch search(*graph, *ranges, *noise, *outputs, building, progress);
  Result<FloatProductsSearch::Found> found = search.Run(calibration.max_error);
  if (!found) return Forward(found);
  QuantizeProducts(graph, products, found->limits);

  CalibrationReport report;
  report.movement = std::move(found->movement);
  for (std::size_t i = 0; i < products.size(); ++i) {
    std::string reason = std::move(products[i].reason);
    if (reason.empty() && !found->limits[i]) reason = "outputs would move too far";
    report.products.push_back({std::string(FirstNodeOf(products[i].node->source)),
                               found->limits[i].has_value(), (*noise)[i], std::move(reason)});
  }
  return report;
}

}  // namespace rewire::compiler
