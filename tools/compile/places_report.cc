// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/compile/places_report.h"

#include <fmt/format.h>

namespace rewire::tools {

std::string PlacesText(const CompileReport& report, const std::string& device) {
  std::size_t all = report.device_calls;
  for (const HostCalls& host : report.host_calls) all += host.calls;
  std::string text = fmt::format("{} of {} kernel calls run on {}\n", report.device_calls, all, device);
  for (const HostCalls& host : report.host_calls) {
    text += fmt::format("  {} of {} stay on the CPU: {}\n", host.calls, host.kernel, host.reason);
  }
  return text;
}

nlohmann::ordered_json HostCallsJson(const CompileReport& report) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array();
  for (const HostCalls& host : report.host_calls) {
    calls.push_back({{"kernel", host.kernel}, {"calls", host.calls}, {"reason", host.reason}});
  }
  return calls;
}

}  // namespace rewire::tools
