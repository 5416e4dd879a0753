// SPDX-License-Identifier: Apache-2.0
//
// _rewire._profile: runs a program and returns every kernel call. rewire/profile.py makes tables of them.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"
#include "rewire/tools/measure/usual_times.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/observer.h"

namespace rewire::python {
namespace {

std::string ArgumentText(const RewireFFIAny& arg) {
  const DLTensor* tensor = RewireTensorOf(&arg);
  if (tensor == nullptr) {
    return arg.type_index == kRewireFFIInt ? std::to_string(arg.v_int64) : std::string("value");
  }
  std::string text = DTypeName(tensor->dtype) + "[";
  for (int i = 0; i < tensor->ndim; ++i) text += (i == 0 ? "" : ", ") + std::to_string(tensor->shape[i]);
  return text + "]";
}

class Recorder : public Observer {
 public:
  struct Call {
    std::uint32_t function, pc, kernel;
    std::int64_t start_ns, end_ns;
    std::string arguments;
  };

  bool wants_kernels() const override { return true; }
  void OnKernel(const KernelCall& call) override {
    Call kept{call.function, call.pc, call.kernel, call.start_ns, call.end_ns, {}};
    for (const RewireFFIAny& arg : call.args) {
      kept.arguments += (kept.arguments.empty() ? "" : ", ") + ArgumentText(arg);
    }
    calls.push_back(std::move(kept));
  }

  std::vector<Call> calls;
};

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns ([(start_ns, end_ns)] of the runs, [(run, name, kernel, node, function, pc, start_ns, end_ns,
// arguments)] of the calls). The first `warmup` runs are not recorded.
nb::tuple Profile(const Arguments& given) {
  auto& self = ToObject<PythonProgram>(given[0], "program", "a rewire.Program");
  const CallPlan& plan = self.PlanOf(FunctionName(given[2]));
  const auto args = nb::borrow<nb::args>(given[1]);
  const std::int64_t repeat = ToInteger(given[3], "repeat"), warmup = ToInteger(given[4], "warmup");
  const std::vector<Value> inputs = ReadInputs(plan, args, nb::kwargs());
  const Module& module = self.program().executable().module();
  VirtualMachine machine(self.program());
  nb::list runs, calls;
  DropCause();
  for (std::int64_t i = -warmup; i < repeat; ++i) {
    Recorder recorder;
    if (i >= 0) ThrowIf(machine.TrySetObserver(&recorder));
    const std::int64_t start = Now();
    const Status status =
        RunWithoutGil(&machine, [&] { return machine.TryInvoke(plan.name, inputs).status(); });
    const std::int64_t end = Now();
    ThrowIf(machine.TrySetObserver(nullptr));
    ThrowIf(status);
    if (i < 0) continue;
    runs.append(nb::make_tuple(start, end));
    for (const Recorder::Call& call : recorder.calls) {
      const KernelImport& import = module.kernels[call.kernel];
      const Function& caller = module.functions[call.function];
      calls.append(nb::make_tuple(i, import.debug_name.empty() ? import.name : import.debug_name, import.name,
                                  SourceTextAt(caller, call.pc), caller.name, call.pc, call.start_ns,
                                  call.end_ns, call.arguments));
    }
  }
  return nb::make_tuple(runs, calls);
}

std::vector<std::int64_t> IntegersOf(nb::handle list, const char* name) {
  std::vector<std::int64_t> integers;
  for (const nb::handle each : list) integers.push_back(ToInteger(each, name));
  return integers;
}

// Returns ([(run_ns, share, fastest_ns, slowest_ns)] of the places and last of the time outside, the
// positions of the places in their order, and the disturbed runs), as the tools rank.
nb::tuple UsualTimes(const Arguments& given) {
  const std::vector<std::int64_t> runs = IntegersOf(given[0], "runs");
  std::vector<std::vector<std::int64_t>> places;
  for (const nb::handle each : given[1]) {
    places.push_back(IntegersOf(each, "places"));
    places.back().resize(runs.size());
  }
  const tools::UsualTimes usual = tools::UsualTimesOf(runs, places);
  nb::list times, ranked, disturbed;
  const auto add = [&](const tools::UsualTime& time) {
    times.append(nb::make_tuple(time.run, time.share, time.fastest, time.slowest));
  };
  for (const tools::UsualTime& time : usual.places) add(time);
  add(usual.outside);
  for (const std::size_t place : tools::RankedPlaces(usual)) ranked.append(place);
  for (const std::size_t run : usual.disturbed) disturbed.append(run);
  return nb::make_tuple(times, ranked, disturbed);
}

}  // namespace

void AddProfile(nb::module_& module) {
  FunctionOf(module,
             "def _usual_times(runs: list[int], places: list[list[int]]) -> "
             "tuple[list[tuple[float, float, int, int]], list[int], list[int]]",
             &UsualTimes, "Returns what places of a program usually take in a run.");
  FunctionOf(
      module,
      "def _profile(program: Program, args: tuple[typing.Any, ...], function: str | None, repeat: int, "
      "warmup: int) -> tuple[list[tuple[int, int]], list[rewire.profile.Call]]",
      &Profile, "Runs a program and returns the times of the runs and of every kernel call.");
}

}  // namespace rewire::python
