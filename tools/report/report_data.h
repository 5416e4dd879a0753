// SPDX-License-Identifier: Apache-2.0
// The data of the page of vm-run --report, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "rewire/executable_format/module.h"
#include "rewire/tools/report/memory_log.h"
#include "rewire/tools/report/run_facts.h"

namespace rewire::tools {

nlohmann::ordered_json ReportData(const Module& module, const RunFacts& facts, const Profiler& profiler,
                                  const MemoryLog& memory);

// The model as a graph: the function, and those that it may call. Kernel calls are nodes, with the index of
// their site in `facts`.
nlohmann::ordered_json GraphData(const Module& module, std::uint32_t function, const RunFacts& facts);

}  // namespace rewire::tools
