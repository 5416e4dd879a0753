// SPDX-License-Identifier: Apache-2.0
// --profile, --profile-trace and --report: the time of every kernel call.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/tools/measure/operation_count.h"
#include "rewire/tools/measure/statistics.h"
#include "rewire/tools/measure/usual_times.h"
#include "rewire/vm/observer.h"

namespace rewire::tools {

class Profiler : public Observer {
 public:
  // With `keep_calls`, each call is kept with its arguments for a timeline. Otherwise only its duration is
  // kept.
  explicit Profiler(bool keep_calls) : keep_calls_(keep_calls) {}

  bool wants_kernels() const override { return true; }
  void OnKernel(const KernelCall& call) override;
  void OnWait(const Wait& wait) override;

  // One invocation of the function, around its kernel calls; steady clock.
  void AddRun(const std::string& function, std::int64_t start_ns, std::int64_t end_ns);

  struct Row {
    std::string name;    // debug name, or else the kernel's name; or the model's node
    std::string kernel;  // what is imported; empty for the last row
    Percentiles times;   // of a call, nanoseconds
    UsualTime usual;     // of a run
  };
  // By debug name, sorted by the usual time in a run, longest first. The last row is the time outside
  // kernels.
  std::vector<Row> Rows() const;
  // By the model's node and the kernel that it calls, in the same order. Empty for a program without notes.
  std::vector<Row> NodeRows() const;

  // Runs, kernel calls and waits for devices as slices in the Trace Event Format ("Trace Event Format",
  // Google, 2016), which Perfetto and chrome://tracing open. Times are microseconds from the first run's
  // start.
  nlohmann::ordered_json Timeline(const Module& module, const std::string& process_name) const;

  // The arguments of a call. Calls of one instruction with equal arguments share it, so that measuring is
  // quick.
  struct Arguments {
    std::uint64_t hash;
    std::string text;
    OperationCount work;
  };
  // An instruction that calls a kernel.
  struct Site {
    std::uint32_t function, pc;
    std::string name;  // the debug name, or else the kernel's name
    std::string kernel;
    std::string node;                     // of the model; empty without a note
    std::vector<std::int64_t> durations;  // nanoseconds
    std::deque<Arguments> arguments;      // empty unless calls are kept
    std::vector<std::int64_t> in_runs{};  // nanoseconds in each run up to the last one that came here
  };
  struct Call {
    const Site* site;
    const Arguments* arguments;
    std::int64_t start_ns, end_ns;  // steady clock
    bool ok;
  };
  struct Run {
    std::string function;
    std::int64_t start_ns, end_ns;
  };
  // The host waited for a device.
  struct DeviceWait {
    WaitCause cause;
    std::int64_t start_ns, end_ns;
  };
  // In the order in which they happened. Calls and waits are empty unless they are kept.
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<DeviceWait>& waits() const { return waits_; }
  std::vector<const Site*> sites() const;  // by function and pc
  std::vector<std::int64_t> run_times() const;
  // The result has these sites as its places.
  UsualTimes UsualTimesOfSites(const std::vector<const Site*>& sites) const;

 private:
  using Names = std::pair<std::string, std::string>;
  // For calls with the same pair of names, which `names_of` returns. Calls without a first name are left out.
  template <typename NamesOf>
  std::vector<Row> RowsBy(NamesOf names_of) const;

  bool keep_calls_;
  std::unordered_map<std::uint64_t, Site> sites_;  // by function and pc
  std::vector<Call> calls_;
  std::vector<DeviceWait> waits_;
  std::vector<Run> runs_;
};

// "30 runs, median 1.20 ms, 1 disturbed (up to 3.40 ms)".
std::string RunsText(const std::vector<std::int64_t>& runs);
// The table that --profile prints.
std::string ProfileText(const std::vector<Profiler::Row>& rows);
nlohmann::ordered_json ProfileJson(const std::vector<Profiler::Row>& rows);

}  // namespace rewire::tools
