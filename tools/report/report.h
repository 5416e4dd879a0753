// SPDX-License-Identifier: Apache-2.0
// vm-run --report: one page that shows where the time and the memory of a run went. docs/vm-run.md.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/status.h"
#include "rewire/tools/measure/profile.h"
#include "rewire/vm/vm.h"

namespace rewire::tools {

struct ReportRequest {
  std::string path;  // of the page, an .html file
  std::string file;  // of the model, as the user named it
  std::uint32_t function = 0;
  Span<const Value> inputs;
  std::int32_t threads = 0;  // of kernels; 0: one per core
};

// Writes the page for runs that a profiler with kept calls has seen. Runs the function once more, by a VM of
// its own, to see where its values lie. Errors: those of a run, and kIo.
Status WriteReport(const ReportRequest& request, const Profiler& profiler, const Program& program);

}  // namespace rewire::tools
