// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/report_data.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "rewire/tools/measure/histogram.h"
#include "rewire/tools/report/advice.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

// A page with more would be slow to open. It says how many are left out.
constexpr std::size_t kMostCalls = 20000, kMostBlocks = 20000;

Json SiteData(const Module& module, const SiteFacts& facts) {
  Json site = {{"f", facts.site->function},      {"function", module.functions[facts.site->function].name},
               {"pc", facts.site->pc},           {"name", facts.site->name},
               {"kernel", facts.site->kernel},   {"node", facts.site->node},
               {"arguments", facts.arguments},   {"calls", facts.times.count},
               {"run", facts.usual.run},         {"fastest", facts.usual.fastest},
               {"slowest", facts.usual.slowest}, {"median", facts.times.median},
               {"share", facts.share},           {"bytes", facts.work.bytes}};
  if (facts.work.operations > 0) site["operations"] = facts.work.operations;
  if (facts.attainable > 0) site["attainable"] = facts.attainable;
  return site;
}

// The shown run: [site, start, duration] for each call, and [cause, start, duration] for each wait.
Json TimelineData(const RunFacts& facts, const Profiler& profiler) {
  std::unordered_map<const Profiler::Site*, std::size_t> index;
  for (std::size_t i = 0; i < facts.sites.size(); ++i) index[facts.sites[i].site] = i;
  const std::int64_t start = facts.shown.start_ns;
  Json calls = Json::array(), waits = Json::array();
  std::size_t left_out = 0;
  for (const Profiler::Call& call : profiler.calls()) {
    if (call.start_ns < start || call.end_ns > facts.shown.end_ns) continue;
    if (calls.size() < kMostCalls) {
      calls.push_back({index[call.site], call.start_ns - start, call.end_ns - call.start_ns});
    } else {
      ++left_out;
    }
  }
  for (const Profiler::DeviceWait& wait : profiler.waits()) {
    if (wait.start_ns < start || wait.end_ns > facts.shown.end_ns || waits.size() >= kMostCalls) continue;
    waits.push_back({WaitCauseText(wait.cause), wait.start_ns - start, wait.end_ns - wait.start_ns});
  }
  return {{"duration", facts.shown.end_ns - start},
          {"calls", std::move(calls)},
          {"left_out", left_out},
          {"waits", std::move(waits)}};
}

// Addresses of blocks become offsets: memory that no block ever had is left out between them.
class Offsets {
 public:
  explicit Offsets(const std::vector<MemoryBlock>& blocks) {
    for (const MemoryBlock& block : blocks) {
      std::uint64_t& end = ranges_[block.address];
      end = std::max(end, block.address + block.bytes);
    }
    std::uint64_t covered = 0;  // the end of what came before
    for (auto& [address, end] : ranges_) {
      const std::uint64_t from = std::max(address, covered);
      if (from > covered) gaps_[from] = (gaps_.empty() ? 0 : gaps_.rbegin()->second) + from - covered;
      covered = std::max(covered, end);
    }
    if (!gaps_.empty()) height_ = covered - gaps_.rbegin()->second;
  }
  std::uint64_t Of(std::uint64_t address) const {
    return address - std::prev(gaps_.upper_bound(address))->second;
  }
  std::uint64_t height() const { return height_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // end by beginning
  std::map<std::uint64_t, std::uint64_t> gaps_;    // by address: bytes of all gaps below it
  std::uint64_t height_ = 0;
};

Json MemoryData(const RunFacts& facts, const MemoryLog& memory) {
  Json data = {{"peak", facts.peak_bytes},
               {"steps", memory.steps()},
               {"complete", memory.complete()},
               {"calls", memory.calls()}};
  if (facts.bound.bounded()) {
    data["bound"] = facts.bound.bytes;
  } else {
    data["unbounded"] = facts.bound.unbounded;
  }
  const Offsets offsets(memory.blocks());
  std::vector<const MemoryBlock*> blocks;
  for (const MemoryBlock& block : memory.blocks()) blocks.push_back(&block);
  // Storages first, so that tensors are drawn over them; and if there are too many, the largest are kept.
  std::stable_sort(blocks.begin(), blocks.end(), [](const MemoryBlock* a, const MemoryBlock* b) {
    return std::pair(!a->is_storage, b->bytes) < std::pair(!b->is_storage, a->bytes);
  });
  data["left_out"] = blocks.size() - std::min(blocks.size(), kMostBlocks);
  blocks.resize(std::min(blocks.size(), kMostBlocks));
  data["height"] = offsets.height();
  Json list = Json::array();
  for (const MemoryBlock* block : blocks) {
    list.push_back({offsets.Of(block->address), block->bytes, block->from, block->to,
                    block->is_storage ? 1 : 0, block->name});
  }
  data["blocks"] = std::move(list);
  return data;
}

Json OutputData(const RunFacts& facts) {
  Json outputs = Json::array();
  for (const OutputFacts& output : facts.outputs) {
    Json makers = Json::array();
    for (const OutputMaker& maker : output.plan.makers)
      makers.push_back({maker.pc, maker.instruction, maker.in_place, maker.reason});
    outputs.push_back({{"name", output.name},
                       {"rewired", output.plan.rewired},
                       {"reason", output.plan.reason},
                       {"makers", std::move(makers)}});
  }
  return outputs;
}

Json HistogramData(const RunFacts& facts) {
  Json rows = Json::array();
  for (const HistogramRow& row : HistogramOf(facts.run_times))
    rows.push_back({{"from", row.from}, {"to", row.to}, {"count", row.count}});
  return rows;
}

}  // namespace

Json ReportData(const Module& module, const RunFacts& facts, const Profiler& profiler,
                const MemoryLog& memory) {
  Json advice = Json::array();
  for (const Advice& each : AdviceOn(facts, profiler))
    advice.push_back({{"text", each.text}, {"action", each.action}});
  Json sites = Json::array();
  for (const SiteFacts& site : facts.sites) sites.push_back(SiteData(module, site));
  Json data = {{"file", facts.file},
               {"function", facts.function},
               {"runs",
                {{"count", facts.times.count},
                 {"slowest", facts.times.maximum},
                 {"disturbed", facts.disturbed},
                 {"disturbed_from", kDisturbed * facts.times.median},
                 {"histogram", HistogramData(facts)},
                 {"median", facts.times.median},
                 {"p90", facts.times.p90},
                 {"fastest", facts.times.minimum}}},
               {"outside", facts.outside},
               {"cpu",
                {{"name", facts.cpu.name},
                 {"threads", facts.cpu.threads},
                 {"operations", facts.cpu.operations},
                 {"bytes", facts.cpu.bytes}}}};
  data["advice"] = std::move(advice);
  data["sites"] = std::move(sites);
  data["timeline"] = TimelineData(facts, profiler);
  data["memory"] = MemoryData(facts, memory);
  data["outputs"] = OutputData(facts);
  return data;
}

}  // namespace rewire::tools
