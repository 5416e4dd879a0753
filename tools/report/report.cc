// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/report.h"

#include <algorithm>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/tools/report/cpu_speed.h"
#include "rewire/tools/report/memory_log.h"
#include "rewire/tools/report/report_data.h"
#include "rewire/tools/report/report_page.h"
#include "rewire/tools/report/run_facts.h"

namespace rewire::tools {
namespace {

// A loop may execute any number of instructions; a picture of so many shows what they do.
constexpr std::uint32_t kMostInstructions = 20000;

// The values of symbolic dimensions that the inputs have.
Array<std::pair<std::string, std::int64_t>> SizesOf(const Module& module, std::uint32_t index,
                                                    Span<const Value> inputs) {
  Array<std::pair<std::string, std::int64_t>> sizes;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    const TypeNode& type = module.functions[index].inputs[i].type.nodes[0];
    if (inputs[i].kind() != ValueKind::kTensor || type.kind != TypeKind::kTensor) continue;
    const Span<const std::int64_t> shape = inputs[i].tensor().shape();
    for (std::size_t axis = 0; axis < std::min<std::size_t>(shape.size(), type.dims.size()); ++axis) {
      if (!IsSymbol(type.dims[axis])) continue;
      const std::string& name = module.symbols[SymbolOf(type.dims[axis])];
      const bool known =
          std::any_of(sizes.begin(), sizes.end(), [&](const auto& size) { return size.first == name; });
      if (!known) sizes.push_back({name, shape[axis]});
    }
  }
  return sizes;
}

}  // namespace

Status WriteReport(const ReportRequest& request, const Profiler& profiler, const Program& program) {
  MemoryLog memory(kMostInstructions);
  VirtualMachine vm(program);
  vm.SetObserver(&memory);
  for (std::uint32_t i = 0; i < request.inputs.size(); ++i) {
    const Value& input = request.inputs[i];
    const InputHandle handle{request.function, i};
    const Status set = input.kind() == ValueKind::kTensor ? vm.TrySetInput(handle, input.tensor().view())
                                                          : vm.TrySetInput(handle, input);
    if (!set) return set;
  }
  if (Status invoked = vm.TryInvoke(request.function); !invoked) return invoked;
  memory.Finish();
  const Module& module = program.executable().module();
  RunFacts facts = FactsOf(program, request.function, profiler, MeasureCpu(request.threads),
                           SizesOf(module, request.function, request.inputs));
  facts.file = request.file;
  facts.peak_bytes = vm.bytes_peak();
  nlohmann::ordered_json data = ReportData(module, facts, profiler, memory);
  data["graph"] = GraphData(module, request.function, facts);
  const std::string page = ReportPage(request.file + " - vm-run", data);
  return WriteFileAtomically(request.path, {reinterpret_cast<const std::byte*>(page.data()), page.size()});
}

}  // namespace rewire::tools
