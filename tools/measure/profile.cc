// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/tools/io/register_text.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::tools {

namespace {

// Hashes all that the text and the work of a call depend on.
std::uint64_t HashOf(Span<const RewireFFIAny> args) {
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15 + (hash >> 29);
  };
  for (const RewireFFIAny& arg : args) {
    const DLTensor* tensor = RewireTensorOf(&arg);
    add(static_cast<std::uint64_t>(arg.type_index));
    if (tensor == nullptr) {
      if (arg.type_index < kRewireFFIObject) add(static_cast<std::uint64_t>(arg.v_int64));
      continue;
    }
    add(std::uint64_t{tensor->dtype.code} << 24 | std::uint64_t{tensor->dtype.bits} << 16 |
        tensor->dtype.lanes);
    for (std::int32_t i = 0; i < tensor->ndim; ++i) add(static_cast<std::uint64_t>(tensor->shape[i]));
    add(static_cast<std::uint64_t>(DeviceTypeOf(tensor->device)));
  }
  return hash;
}

}  // namespace

void Profiler::OnKernel(const KernelCall& call) {
  const auto [place, added] =
      sites_.try_emplace(std::uint64_t{call.function} << 32 | call.pc);  // stays where it is
  Site& site = place->second;
  const Function& function = call.module.functions[call.function];
  if (added) {
    const KernelImport& import = call.module.kernels[call.kernel];
    site.function = call.function;
    site.pc = call.pc;
    site.name = import.debug_name.empty() ? import.name : import.debug_name;
    site.kernel = import.name;
    site.node = SourceTextAt(function, call.pc);
  }
  site.durations.push_back(call.end_ns - call.start_ns);
  site.in_runs.resize(runs_.size() + 1);  // AddRun comes behind the calls of a run
  site.in_runs.back() += site.durations.back();
  if (!keep_calls_) return;
  const std::uint64_t hash = HashOf(call.args);
  auto arguments = std::find_if(site.arguments.begin(), site.arguments.end(),
                                [hash](const Arguments& each) { return each.hash == hash; });
  if (arguments == site.arguments.end()) {
    std::string text;
    for (const RewireFFIAny& arg : call.args) text += (text.empty() ? "" : ", ") + RegisterText(arg);
    site.arguments.push_back(
        {hash, std::move(text), CountOperations(call.packed, call.module.kernels[call.kernel], call.args)});
    arguments = std::prev(site.arguments.end());
  }
  calls_.push_back({&site, &*arguments, call.start_ns, call.end_ns, call.ok});
}

void Profiler::OnWait(const Wait& wait) {
  if (keep_calls_) waits_.push_back({wait.cause, wait.start_ns, wait.end_ns});
}

std::vector<const Profiler::Site*> Profiler::sites() const {
  std::vector<const Site*> sites;
  for (const auto& [place, site] : sites_) sites.push_back(&site);
  std::sort(sites.begin(), sites.end(), [](const Site* a, const Site* b) {
    return std::pair(a->function, a->pc) < std::pair(b->function, b->pc);
  });
  return sites;
}

void Profiler::AddRun(const std::string& function, std::int64_t start_ns, std::int64_t end_ns) {
  runs_.push_back({function, start_ns, end_ns});
}

std::vector<std::int64_t> Profiler::run_times() const {
  std::vector<std::int64_t> times;
  for (const Run& run : runs_) times.push_back(run.end_ns - run.start_ns);
  return times;
}

UsualTimes Profiler::UsualTimesOfSites(const std::vector<const Site*>& sites) const {
  std::vector<std::vector<std::int64_t>> places;
  for (const Site* site : sites) places.emplace_back(site->in_runs).resize(runs_.size());
  return UsualTimesOf(run_times(), places);
}

template <typename NamesOf>
std::vector<Profiler::Row> Profiler::RowsBy(NamesOf names_of) const {
  struct Times {
    std::vector<std::int64_t> calls, runs;
  };
  std::map<Names, Times> by_name;
  for (const auto& [place, site] : sites_) {
    Times& times = by_name[names_of(site)];
    times.calls.insert(times.calls.end(), site.durations.begin(), site.durations.end());
    times.runs.resize(runs_.size());
    for (std::size_t r = 0; r < std::min(runs_.size(), site.in_runs.size()); ++r)
      times.runs[r] += site.in_runs[r];
  }
  std::vector<std::vector<std::int64_t>> places;
  for (const auto& [names, times] : by_name) places.push_back(times.runs);
  const UsualTimes usual = UsualTimesOf(run_times(), places);
  double outside_kernels = 0;
  for (const std::int64_t run : run_times()) outside_kernels += static_cast<double>(run);
  std::vector<Row> unranked;
  for (auto& [names, times] : by_name) {
    unranked.push_back(
        {names.first, names.second, PercentilesOf(std::move(times.calls)), usual.places[unranked.size()]});
    outside_kernels -= unranked.back().times.total;
  }
  std::vector<Row> rows;
  for (const std::size_t place : RankedPlaces(usual)) {
    if (!unranked[place].name.empty()) rows.push_back(std::move(unranked[place]));
  }
  Row outside{"(outside kernels)", "", {}, usual.outside};
  outside.times.count = runs_.size();
  outside.times.total = std::max(0.0, outside_kernels);
  outside.times.median = usual.outside.run;
  rows.push_back(std::move(outside));
  return rows;
}

std::vector<Profiler::Row> Profiler::NodeRows() const {
  std::vector<Row> rows = RowsBy([](const Site& site) { return Names(site.node, site.kernel); });
  rows.pop_back();  // what Rows() says of the time outside
  return rows;
}

std::vector<Profiler::Row> Profiler::Rows() const {
  return RowsBy([](const Site& site) { return Names(site.name, site.kernel); });
}

nlohmann::ordered_json Profiler::Timeline(const Module& module, const std::string& process_name) const {
  using Json = nlohmann::ordered_json;
  const std::int64_t origin = runs_.empty() ? 0 : runs_.front().start_ns;
  Json events = Json::array();
  const auto add_name = [&](const char* what, const std::string& name) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", name}}}});
  };
  const auto add_slice = [&](const std::string& name, const char* category, std::int64_t start,
                             std::int64_t end, Json arguments) {
    events.push_back({{"name", name},
                      {"cat", category},
                      {"ph", "X"},
                      {"ts", static_cast<double>(start - origin) / 1e3},
                      {"dur", static_cast<double>(end - start) / 1e3},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", std::move(arguments)}});
  };
  add_name("process_name", process_name);
  add_name("thread_name", "virtual machine");
  for (const Run& run : runs_) add_slice(run.function, "run", run.start_ns, run.end_ns, Json::object());
  for (const Call& call : calls_) {
    Json arguments = {{"kernel", call.site->kernel},
                      {"function", module.functions[call.site->function].name},
                      {"pc", call.site->pc},
                      {"arguments", call.arguments->text},
                      {"ok", call.ok}};
    if (!call.site->node.empty()) arguments["node"] = call.site->node;
    add_slice(call.site->name, "kernel", call.start_ns, call.end_ns, std::move(arguments));
  }
  for (const DeviceWait& wait : waits_) {
    add_slice("wait", "wait", wait.start_ns, wait.end_ns, {{"cause", WaitCauseText(wait.cause)}});
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

std::string RunsText(const std::vector<std::int64_t>& runs) {
  if (runs.empty()) return "no runs";
  const UsualTimes usual = UsualTimesOf(runs, {});
  std::string text = runs.size() == 1
                         ? "1 run of " + DurationText(usual.run)
                         : fmt::format("{} runs, median {}", runs.size(), DurationText(usual.run));
  if (!usual.disturbed.empty()) {
    const auto slowest = static_cast<double>(*std::max_element(runs.begin(), runs.end()));
    text += fmt::format(", {} disturbed (up to {})", usual.disturbed.size(), DurationText(slowest));
  }
  return text;
}

std::string ProfileText(const std::vector<Profiler::Row>& rows) {
  std::vector<std::vector<std::string>> table;
  table.push_back({"name", "calls", "a run", "fastest", "slowest", "share", "a call", "kernel"});
  for (const Profiler::Row& row : rows) {
    table.push_back({row.name, std::to_string(row.times.count), DurationText(row.usual.run),
                     DurationText(static_cast<double>(row.usual.fastest)),
                     DurationText(static_cast<double>(row.usual.slowest)),
                     fmt::format("{:.1f} %", 100 * row.usual.share), DurationText(row.times.median),
                     row.kernel});
  }
  return TableText(table, {1, 2, 3, 4, 5, 6});
}

nlohmann::ordered_json ProfileJson(const std::vector<Profiler::Row>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Profiler::Row& row : rows) {
    json.push_back({{"name", row.name},
                    {"kernel", row.kernel},
                    {"calls", row.times.count},
                    {"total_ns", row.times.total},
                    {"run_ns", row.usual.run},
                    {"fastest_ns", row.usual.fastest},
                    {"slowest_ns", row.usual.slowest},
                    {"share", row.usual.share},
                    {"median_ns", row.times.median}});
  }
  return json;
}

}  // namespace rewire::tools
