// SPDX-License-Identifier: Apache-2.0
// bench-vm: what the interpreter costs, as multiples of a direct call of an empty kernel in the same run.
//
//   bench-vm [--json FILE] [--benchmark_...]   measures; Google Benchmark's flags work
//   (--benchmark_filter=...) bench-vm --instructions                    runs every case once for callgrind;
//   vm_instructions.py reads the dumps
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "rewire/tests/bench/vm_cases.h"
#include "rewire/tests/bench/vm_cpus.h"
#include "rewire/tests/bench/vm_report.h"

namespace rewire::bench {

void Die(const std::string& message) {
  fmt::print(stderr, "bench-vm: {}\n", message);
  std::exit(1);
}

namespace {

constexpr int kSamples = 15;
constexpr double kSampleSeconds = 0.02;
constexpr int kThreadPairs = 20;

// Gathers the samples of each case; the table is printed when all are there.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      if (run.error_occurred) Die(run.error_message);
      samples_[run.run_name.function_name].push_back(run.GetAdjustedCPUTime());
    }
  }
  // Nanoseconds for one call of a case's run, none when a filter left it out.
  const std::vector<double>& samples(const std::string& name) { return samples_[name]; }

 private:
  std::map<std::string, std::vector<double>> samples_;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  AddCallCases(cases);
  AddOpcodeCases(cases);
  AddHostCases(cases);
  AddLoadCases(cases);
  AddParameterCases(cases);
  return cases;
}

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

// One dump a case, named after it, of one call that follows another: nothing of the first call's set-up is in
// it.
int CountInstructions() {
  for (const Case& one : AllCases()) {
    one.run();
    CALLGRIND_ZERO_STATS;
    one.run();
    CALLGRIND_DUMP_STATS_AT(one.name.c_str());
    fmt::print("{}\t{}\n", one.name, one.operations);
  }
  return 0;
}

Report Measure(const std::vector<int>& cpus) {
  Report report;
  report.samples = kSamples;
  report.machine = fmt::format("{}, {} CPUs", CpuModel(), cpus.size());
  double load[1] = {0};
  if (::getloadavg(load, 1) == 1) report.load = load[0];
  const std::vector<Case> cases = AllCases();
  for (const Case& one : cases) {
    benchmark::RegisterBenchmark(one.name.c_str(),
                                 [&one](benchmark::State& state) {
                                   for ([[maybe_unused]] const auto iteration : state) one.run();
                                 })
        ->MinTime(kSampleSeconds)
        ->Repetitions(kSamples)
        ->Unit(benchmark::kNanosecond);
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  bool filtered = false;
  for (const Case& one : cases) {
    std::vector<double> samples = collector.samples(one.name);
    filtered = filtered || samples.empty();
    if (samples.empty()) continue;
    for (double& sample : samples) sample /= one.operations;
    report.figures.push_back({one.name, Summarize(std::move(samples)), one.target});
  }
  if (filtered) return report;
  report.residency = MeasureResidency();
  report.vm_bytes = MeasureVmBytes();
  if (cpus.size() > 1) report.threads = MeasureThreads(kThreadPairs, cpus[0], cpus[1]);
  return report;
}

int Main(int argc, char** argv) {
  std::string json_path;
  // Samples of all cases are taken in turn, so that a change of the machine's speed meets them all.
  char interleave[] = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> args = {argv[0], interleave};
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--instructions") return CountInstructions();
    if (arg == "--json" && i + 1 < argc) {
      json_path = argv[++i];
    } else {
      args.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(args.size());
  benchmark::Initialize(&count, args.data());
  if (benchmark::ReportUnrecognizedArguments(count, args.data())) return 2;

  const std::vector<int> cpus = AllowedCpus();
  PinThread(cpus.front());
  const Report report = Measure(cpus);
  fmt::print("{}", TableOf(report));
  if (json_path.empty()) return 0;
  std::ofstream json(json_path);
  json << JsonOf(report);
  json.close();
  if (!json.good()) Die(json_path + " cannot be written");
  return 0;
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) { return rewire::bench::Main(argc, argv); }
