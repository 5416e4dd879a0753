// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/load/load_report.h"

#include <fmt/format.h>

#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

struct NamedPercentile {
  const char* name;
  const char* key;
  Percentile percentile;
};
constexpr NamedPercentile kPercentiles[] = {
    {"p50", "p50", {50'000}},     {"p90", "p90", {90'000}},       {"p99", "p99", {99'000}},
    {"p99.9", "p99_9", {99'900}}, {"p99.99", "p99_99", {99'990}},
};

nlohmann::ordered_json HistogramJson(const LatencyHistogram& histogram) {
  nlohmann::ordered_json json = {
      {"count", histogram.count()}, {"min", histogram.minimum()}, {"mean", histogram.mean()}};
  for (const NamedPercentile& row : kPercentiles) json[row.key] = histogram.At(row.percentile);
  json["max"] = histogram.maximum();
  return json;
}

std::string Time(std::uint64_t nanoseconds) { return DurationText(static_cast<double>(nanoseconds)); }

double CpuOf(const LoadRow& row) {
  const std::uint64_t answered = row.result.succeeded + row.result.failed;
  return answered == 0 ? 0 : static_cast<double>(row.cpu.count()) / static_cast<double>(answered);
}

}  // namespace

bool IsSaturated(const LoadResult& result) {
  // The last answers of a load that is served in time come with its last arrivals.
  return result.plan.rate > 0 && !result.stopped &&
         (result.unserved > 0 || result.elapsed > result.plan.duration + result.plan.duration / 20);
}

std::string LoadText(const std::vector<LoadRow>& rows) {
  std::vector<std::vector<std::string>> table = {{"rate", "answers/s", "mean"}};
  for (const NamedPercentile& row : kPercentiles) table[0].push_back(row.name);
  table[0].insert(table[0].end(), {"max", "call p50", "CPU", "failed", "unserved"});
  std::string notes;
  for (const LoadRow& row : rows) {
    const LoadResult& result = row.result;
    const bool open = result.plan.rate > 0;
    std::vector<std::string> cells = {open ? fmt::format("{:.6g}", result.plan.rate) : "closed",
                                      fmt::format("{:.1f}", result.per_second()),
                                      DurationText(result.latency.mean())};
    for (const NamedPercentile& entry : kPercentiles)
      cells.push_back(Time(result.latency.At(entry.percentile)));
    cells.insert(cells.end(),
                 {Time(result.latency.maximum()), Time(result.service.At({50'000})), DurationText(CpuOf(row)),
                  std::to_string(result.failed), std::to_string(result.unserved)});
    table.push_back(std::move(cells));
    for (const auto& [message, times] : result.errors)
      notes += fmt::format("{} failed: {}\n", times, message);
    if (IsSaturated(result)) {
      notes += fmt::format("a rate of {:.6g} is more than is served here: {:.1f} answers a second\n",
                           result.plan.rate, result.per_second());
    }
  }
  std::vector<std::size_t> right;
  for (std::size_t i = 0; i < table[0].size(); ++i) right.push_back(i);
  return TableText(table, right) + notes;
}

nlohmann::ordered_json LoadJson(const LoadRow& row) {
  const LoadResult& result = row.result;
  const bool open = result.plan.rate > 0;
  nlohmann::ordered_json json = {{"loop", open ? "open" : "closed"}};
  if (open) json["rate"] = result.plan.rate;
  json["seconds"] = static_cast<double>(result.elapsed.count()) / 1e9;
  json["answers_per_second"] = result.per_second();
  json["succeeded"] = result.succeeded;
  json["failed"] = result.failed;
  json["unserved"] = result.unserved;
  if (open) json["saturated"] = IsSaturated(result);
  json["latency_ns"] = HistogramJson(result.latency);
  json["call_ns"] = HistogramJson(result.service);
  json["cpu_ns_per_request"] = CpuOf(row);
  json["errors"] = nlohmann::ordered_json::object();
  for (const auto& [message, times] : result.errors) json["errors"][message] = times;
  return json;
}

}  // namespace rewire::tools
