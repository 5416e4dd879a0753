// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/compile/zeroed_report.h"

#include <fmt/format.h>

namespace rewire::tools {

std::string ZeroedWeightsText(const CompileReport& report) {
  std::string text;
  for (const ZeroedConstant& zeroed : report.zeroed_weights) {
    text += fmt::format("tiny-weights: {} subnormal weight{} of '{}' became 0 ({})\n", zeroed.count,
                        zeroed.count == 1 ? "" : "s", zeroed.constant, zeroed.node);
  }
  return text;
}

nlohmann::ordered_json ZeroedWeightsJson(const CompileReport& report) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ZeroedConstant& zeroed : report.zeroed_weights) {
    list.push_back({{"constant", zeroed.constant}, {"node", zeroed.node}, {"count", zeroed.count}});
  }
  return list;
}

}  // namespace rewire::tools
