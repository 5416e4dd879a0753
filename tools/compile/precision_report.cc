// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/compile/precision_report.h"

#include <fmt/format.h>

#include <cmath>

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no number for infinity.
Json NumberOrNull(double number) { return std::isfinite(number) ? Json(number) : Json(); }

}  // namespace

std::string PrecisionText(const CompileReport& report, const std::string& numbers) {
  std::string text = fmt::format("{} of {} convolutions and products compute with {}\n", report.quantized,
                                 report.products.size(), numbers);
  for (const ProductPrecision& product : report.products) {
    if (product.quantized) continue;
    text += fmt::format("{} stays float: {}", product.node, product.reason);
    text += std::isnan(product.noise) ? "\n" : fmt::format(" (noise {:.3g})\n", product.noise);
  }
  for (const OutputMovement& output : report.movement) {
    text += fmt::format("output {} moved from float by at most {:.3g}, {:.3g} of its norm\n", output.output,
                        output.max_abs, output.relative);
  }
  if (!report.unmeasured.empty()) {
    text +=
        fmt::format("how far outputs moved is not known: {}. --calibrate gives samples\n", report.unmeasured);
  }
  return text;
}

Json ProductsJson(const CompileReport& report) {
  Json products = Json::array();
  for (const ProductPrecision& product : report.products) {
    products.push_back({{"node", product.node},
                        {"quantized", product.quantized},
                        {"noise", NumberOrNull(product.noise)},
                        {"reason", product.reason}});
  }
  return products;
}

Json MovementJson(const CompileReport& report) {
  Json outputs = Json::array();
  for (const OutputMovement& output : report.movement) {
    outputs.push_back({{"output", output.output},
                       {"max_abs", NumberOrNull(output.max_abs)},
                       {"relative", NumberOrNull(output.relative)}});
  }
  return outputs;
}

}  // namespace rewire::tools
