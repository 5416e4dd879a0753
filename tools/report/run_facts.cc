// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/run_facts.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "rewire/executable_format/names/source_note.h"
#include "rewire/tools/record/value_names.h"

namespace rewire::tools {
namespace {

Profiler::Run NearestToMedian(const std::vector<Profiler::Run>& runs, double median) {
  const auto distance = [median](const Profiler::Run& run) {
    return std::abs(static_cast<double>(run.end_ns - run.start_ns) - median);
  };
  return *std::min_element(runs.begin(), runs.end(), [&](const Profiler::Run& a, const Profiler::Run& b) {
    return distance(a) < distance(b);
  });
}

// The operator of the model that a call belongs to: "Resize" of "Resize 'up1'".
std::string OperatorOf(const Profiler::Site& site) {
  return std::string(SplitNote(FirstNodeOf(site.node)).kind);
}

void AddCalls(const Profiler& profiler, const Profiler::Run& shown,
              std::unordered_map<const Profiler::Site*, SiteFacts*>* sites) {
  const Profiler::Site* before = nullptr;
  SiteFacts* last = nullptr;
  for (const Profiler::Call& call : profiler.calls()) {
    if (call.start_ns < shown.start_ns || call.end_ns > shown.end_ns) continue;
    SiteFacts& facts = *sites->at(call.site);
    if (last != nullptr && last->before.empty()) last->before = OperatorOf(*call.site);
    last = nullptr;
    if (facts.arguments.empty()) {
      facts.arguments = call.arguments->text;
      facts.work = call.arguments->work;
      if (before != nullptr) facts.after = OperatorOf(*before);
      last = &facts;
    }
    before = call.site;
  }
}

// A clock of nanoseconds says little of shorter calls.
constexpr double kLeastTime = 1000;

}  // namespace

void AddAttainable(RunFacts* facts) {
  CpuSpeed& cpu = facts->cpu;
  if (cpu.operations <= 0 || cpu.bytes <= 0) return;
  for (const SiteFacts& site : facts->sites) {
    if (site.times.median < kLeastTime) continue;
    cpu.operations = std::max(cpu.operations, 1e9 * site.work.operations / site.times.median);
    cpu.bytes = std::max(cpu.bytes, 1e9 * site.work.bytes / site.times.median);
  }
  for (SiteFacts& site : facts->sites) {
    if (site.times.median < kLeastTime) continue;
    site.attainable = 1e9 * std::max(site.work.operations / cpu.operations, site.work.bytes / cpu.bytes);
  }
}

RunFacts FactsOf(const Program& program, std::uint32_t function, const Profiler& profiler,
                 const CpuSpeed& cpu, const Array<std::pair<std::string, std::int64_t>>& sizes) {
  RunFacts facts;
  const Function& code = program.executable().module().functions[function];
  facts.function = code.name;
  facts.run_times = profiler.run_times();
  facts.times = PercentilesOf(facts.run_times);
  facts.cpu = cpu;
  if (!profiler.runs().empty()) facts.shown = NearestToMedian(profiler.runs(), facts.times.median);

  std::unordered_map<const Profiler::Site*, SiteFacts*> by_site;
  const std::vector<const Profiler::Site*> sites = profiler.sites();
  const UsualTimes usual = profiler.UsualTimesOfSites(sites);
  for (const std::size_t place : RankedPlaces(usual)) {
    SiteFacts& added = facts.sites.emplace_back();
    added.site = sites[place];
    added.times = PercentilesOf(sites[place]->durations);
    added.usual = usual.places[place];
    added.share = added.usual.share;
  }
  for (SiteFacts& site : facts.sites) by_site[site.site] = &site;
  facts.outside = usual.outside.share;
  facts.disturbed = usual.disturbed;
  AddCalls(profiler, facts.shown, &by_site);
  AddAttainable(&facts);

  for (std::uint32_t leaf = 0; leaf < code.output_names.size(); ++leaf) {
    Result<OutputPlan> plan = program.TryOutputPlan({function, leaf});
    if (plan) facts.outputs.push_back({code.output_names[leaf], *std::move(plan)});
  }
  MemoryBoundOptions options;
  options.max_dims = sizes;
  const Result<MemoryBound> bound = program.TryMemoryBound(code.name, options);
  if (bound) {
    facts.bound = *bound;
  } else {
    facts.bound.unbounded = bound.error().message();
  }
  return facts;
}

}  // namespace rewire::tools
