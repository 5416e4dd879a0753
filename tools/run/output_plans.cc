// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/output_plans.h"

#include <fmt/format.h>

#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/module.h"
#include "rewire/tools/run/device_copies.h"
#include "rewire/vm/output.h"

namespace rewire::tools {

std::string OutputPlansText(const Program& program, std::uint32_t function) {
  const Array<std::string>& names = program.executable().module().functions[function].output_names;
  const Module& module = program.executable().module();
  std::string text;
  if (names.empty()) text = fmt::format("{} has no outputs\n", module.functions[function].name);
  for (std::uint32_t leaf = 0; leaf < names.size(); ++leaf)
    text += fmt::format("{}: {}\n", names[leaf], program.ExplainOutput({function, leaf}));
  return text + DeviceCopiesText(module, module.functions[function]);
}

nlohmann::ordered_json OutputPlansJson(const Program& program, std::uint32_t function) {
  const Array<std::string>& names = program.executable().module().functions[function].output_names;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (std::uint32_t leaf = 0; leaf < names.size(); ++leaf) {
    nlohmann::ordered_json output = {{"name", names[leaf]},
                                     {"plan", program.ExplainOutput({function, leaf})}};
    if (const Result<OutputPlan> plan = program.TryOutputPlan({function, leaf})) {
      output["rewired"] = plan->rewired;
      output["reason"] = plan->reason;
      output["makers"] = nlohmann::ordered_json::array();
      for (const OutputMaker& maker : plan->makers) {
        output["makers"].push_back({{"pc", maker.pc},
                                    {"instruction", maker.instruction},
                                    {"in_place", maker.in_place},
                                    {"reason", maker.reason}});
      }
    }
    json.push_back(std::move(output));
  }
  return json;
}

nlohmann::ordered_json DeviceCopiesJson(const Program& program, std::uint32_t function) {
  const Module& module = program.executable().module();
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const DeviceCopyPlan& copy : DeviceCopies(module, module.functions[function])) {
    json.push_back({{"pc", copy.pc},
                    {"from", copy.from},
                    {"to", copy.to},
                    {"source", copy.source},
                    {"readers", copy.readers}});
  }
  return json;
}

}  // namespace rewire::tools
