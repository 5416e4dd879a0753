// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/bench/vm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rewire::bench {
namespace {

constexpr double kMostThreadRatio = 1.1;
// The least throughput of two threads, as a multiple of one's.
constexpr double kLeastThroughput = 1.9;

// Null when a filter left the direct call out.
std::optional<double> DirectCall(const Report& report) {
  std::optional<double> fastest;
  for (const Figure& figure : report.figures) {
    if (figure.name.rfind(kDirectCall, 0) != 0) continue;
    fastest = std::min(fastest.value_or(figure.nanoseconds.median), figure.nanoseconds.median);
  }
  return fastest;
}

std::string TargetText(const Target& target) {
  switch (target.unit) {
    case Target::kDirectCalls:
      return fmt::format("{:g} x", target.most);
    case Target::kNanoseconds:
      return fmt::format("{:g} ns", target.most);
  }
  return {};
}

// Nothing when it cannot be said.
std::optional<bool> Holds(const Figure& figure, std::optional<double> direct) {
  if (!figure.target) return std::nullopt;
  switch (figure.target->unit) {
    case Target::kDirectCalls:
      if (!direct) return std::nullopt;
      return figure.nanoseconds.median / *direct <= figure.target->most;
    case Target::kNanoseconds:
      return figure.nanoseconds.median <= figure.target->most;
  }
  return std::nullopt;
}

std::string Row(const std::string& name, const Summary& summary, const std::string& ratio,
                const std::string& target, std::optional<bool> holds) {
  return fmt::format("{:<50}{:>11.2f}  {:>22}{:>10}{:>12}  {}\n", name, summary.median,
                     fmt::format("{:.2f} .. {:.2f}", summary.low, summary.high), ratio, target,
                     !holds   ? ""
                     : *holds ? "met"
                              : "MISSED");
}

nlohmann::json JsonOf(const Summary& summary) {
  return {{"median", summary.median}, {"lower_quartile", summary.low}, {"upper_quartile", summary.high}};
}

}  // namespace

std::string TableOf(const Report& report) {
  const std::optional<double> direct = DirectCall(report);
  std::string table = fmt::format(
      "{}, load average {:.1f}. CPU nanoseconds per operation, medians of {}; x: direct calls of an empty "
      "kernel.\n\n"
      "{:<50}{:>11}  {:>22}{:>10}{:>12}\n",
      report.machine, report.load, report.samples, "", "ns", "quartiles", "x", "at most");
  for (const Figure& figure : report.figures) {
    table += Row(figure.name, figure.nanoseconds,
                 direct ? fmt::format("{:.2f}", figure.nanoseconds.median / *direct) : "",
                 figure.target ? TargetText(*figure.target) : "", Holds(figure, direct));
  }
  for (const ThreadScaling& work : report.threads) {
    table += Row(work.name + ": one thread", work.one, "", "", std::nullopt);
    table += Row("  two threads over one Program", work.two, "", "", std::nullopt);
    table += Row("  two processes", work.processes, "", "", std::nullopt);
    table += Row("  two threads / one thread (ratio)", work.ratio, "", fmt::format("{:g}", kMostThreadRatio),
                 work.ratio.median <= kMostThreadRatio);
    table += Row("  throughput of two threads (multiple of one)", work.throughput, "",
                 fmt::format(">= {:g}", kLeastThroughput), work.throughput.median >= kLeastThroughput);
    table +=
        Row("  throughput of two processes (multiple of one)", work.process_throughput, "", "", std::nullopt);
  }
  if (report.residency) {
    table += fmt::format("{:<50}{} of {}\n", "pages of a 64 MiB constant brought in by opening",
                         report.residency->resident, report.residency->pages);
  }
  if (report.vm_bytes) {
    table += fmt::format("{:<50}{}, at most {} {}\n", "bytes of a VM over 1 GB of parameters",
                         *report.vm_bytes, kMostVmBytes, *report.vm_bytes <= kMostVmBytes ? "met" : "MISSED");
  }
  return table;
}

std::string JsonOf(const Report& report) {
  const std::optional<double> direct = DirectCall(report);
  nlohmann::json cases = nlohmann::json::array();
  for (const Figure& figure : report.figures) {
    nlohmann::json entry = {{"name", figure.name}, {"nanoseconds", JsonOf(figure.nanoseconds)}};
    if (direct) entry["direct_calls"] = figure.nanoseconds.median / *direct;
    if (figure.target) entry["at_most"] = TargetText(*figure.target);
    if (const std::optional<bool> holds = Holds(figure, direct)) entry["met"] = *holds;
    cases.push_back(std::move(entry));
  }
  nlohmann::json json = {{"machine", report.machine},
                         {"load_average", report.load},
                         {"samples", report.samples},
                         {"cases", std::move(cases)}};
  for (const ThreadScaling& work : report.threads) {
    json["two_threads"].push_back({{"name", work.name},
                                   {"one_thread_nanoseconds", JsonOf(work.one)},
                                   {"two_threads_nanoseconds", JsonOf(work.two)},
                                   {"two_processes_nanoseconds", JsonOf(work.processes)},
                                   {"ratio", JsonOf(work.ratio)},
                                   {"throughput", JsonOf(work.throughput)},
                                   {"throughput_of_processes", JsonOf(work.process_throughput)},
                                   {"at_most", kMostThreadRatio},
                                   {"met", work.ratio.median <= kMostThreadRatio}});
  }
  if (report.residency) {
    json["constant_64_mib"] = {{"resident_pages", report.residency->resident},
                               {"pages", report.residency->pages}};
  }
  if (report.vm_bytes) json["vm_over_1_gb_bytes"] = *report.vm_bytes;
  return json.dump(2) + "\n";
}

}  // namespace rewire::bench
