// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "rewire/kernels/contract/names.h"
#include "rewire/tools/io/units.h"
#include "rewire/tools/record/value_names.h"

namespace rewire::tools {
namespace {

// Shares of the time from which on something is worth a word.
constexpr double kWorthOrder = 0.05, kWorthCopies = 0.10, kWorthCasts = 0.03, kWorthOutside = 0.15,
                 kWorthWaits = 0.05, kWorthProduct = 0.10, kWorthKernel = 0.40;
// A product that takes this many times what the CPU could do it in is slow.
constexpr double kSlowProduct = 3;
// The slowest runs beside the usual one.
constexpr double kUnsteady = 1.5;
constexpr std::size_t kRunsForPercentiles = 10;

// "transpose" of "rewire.transpose"; empty for kernels that compute shapes.
std::string_view KindOf(const SiteFacts& site) {
  const std::string_view kernel = site.site->kernel;
  return !names::IsShapeFunction(kernel) ? kernel.substr(kernel.rfind('.') + 1) : "";
}

std::string PlaceOf(const SiteFacts& site) {
  return site.site->node.empty() ? "kernel " + site.site->name : site.site->node;
}

template <typename Wanted>
std::vector<const SiteFacts*> Chosen(const RunFacts& facts, const Wanted& wanted) {
  std::vector<const SiteFacts*> chosen;
  for (const SiteFacts& site : facts.sites) {
    if (wanted(site)) chosen.push_back(&site);
  }
  return chosen;
}

double ShareOf(const std::vector<const SiteFacts*>& sites) {
  double share = 0;
  for (const SiteFacts* site : sites) share += site->share;
  return share;
}

std::string Percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "Resize": the operator beside which these calls spend most of their time. Empty if no call has one.
std::string Neighbor(const std::vector<const SiteFacts*>& sites) {
  std::map<std::string, double> shares;
  for (const SiteFacts* site : sites) {
    for (const std::string& kind : {site->after, site->before}) {
      if (!kind.empty()) shares[kind] += site->share;
    }
  }
  const auto most = std::max_element(shares.begin(), shares.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == shares.end() ? "" : most->first;
}

// "Transpose 'a', Transpose 'b' and 3 more".
std::string Places(const std::vector<const SiteFacts*>& sites) {
  std::string text;
  const std::size_t shown = std::min<std::size_t>(sites.size(), 2);
  for (std::size_t i = 0; i < shown; ++i) text += (i > 0 ? ", " : "") + PlaceOf(*sites[i]);
  if (sites.size() > shown) text += fmt::format(" and {} more", sites.size() - shown);
  return text;
}

bool IsOneOf(std::string_view kind, std::initializer_list<std::string_view> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

void AddKernels(const RunFacts& facts, std::vector<Advice>* advice) {
  const auto add = [&](double worth, const auto& wanted, const auto& text) {
    const std::vector<const SiteFacts*> sites =
        Chosen(facts, [&](const SiteFacts& site) { return wanted(KindOf(site)); });
    if (const double share = ShareOf(sites); share >= worth) advice->push_back({share, text(share, sites)});
  };
  using Sites = std::vector<const SiteFacts*>;
  add(
      kWorthOrder, [](std::string_view kind) { return kind == "transpose"; },
      [](double share, const Sites& sites) {
        const std::string beside = Neighbor(sites);
        return fmt::format(
            "Transposes{} take {} of the time: {}. A model whose axes are in one order "
            "throughout does not need them.",
            beside.empty() ? "" : " around " + beside, Percent(share), Places(sites));
      });
  add(
      kWorthCopies,
      [](std::string_view kind) {
        return IsOneOf(kind, {"concat", "slice", "dynamic_slice", "split", "pad", "dynamic_pad", "expand",
                              "tile", "copy", "gather", "gather_elements", "scatter_elements", "scatter_nd"});
      },
      [](double share, const Sites& sites) {
        return fmt::format("Copies of data (concat, slice, pad and the like) take {} of the time: {}.",
                           Percent(share), Places(sites));
      });
  add(
      kWorthCasts,
      [](std::string_view kind) {
        return IsOneOf(kind, {"cast", "cast_narrow", "quantize_linear", "dequantize_linear", "requantize"});
      },
      [](double share, const Sites& sites) {
        return fmt::format(
            "Conversions between dtypes take {} of the time: {}. Keep one dtype between the "
            "operators that are fast in it.",
            Percent(share), Places(sites));
      });
}

// The kernel that most of the time goes to, where one stands out.
void AddLargest(const RunFacts& facts, std::vector<Advice>* advice) {
  std::map<std::string_view, std::vector<const SiteFacts*>> kernels;
  for (const SiteFacts& site : facts.sites) kernels[site.site->kernel].push_back(&site);
  for (const auto& [kernel, sites] : kernels) {
    const double share = ShareOf(sites);
    if (share < kWorthKernel) continue;
    advice->push_back({share, fmt::format("The kernel {} takes {} of the time, in {} places: {}.", kernel,
                                          Percent(share), sites.size(), Places(sites))});
  }
}

void AddProducts(const RunFacts& facts, std::vector<Advice>* advice) {
  for (const SiteFacts& site : facts.sites) {
    if (site.share < kWorthProduct || site.work.operations == 0 || site.attainable == 0) continue;
    const double times = site.times.median / site.attainable;
    if (times < kSlowProduct) continue;
    const bool packed = site.site->kernel.find(".packed.") != std::string::npos ||
                        site.site->kernel.find(".onednn.") != std::string::npos;
    advice->push_back(
        {site.share,
         fmt::format(
             "{} takes {} of the time, {:.1f} times what this CPU needs for so many operations and "
             "bytes.{}",
             PlaceOf(site), Percent(site.share), times,
             packed ? "" : " Its weights are not packed; vm-compile packs weights that are constants.")});
  }
}

void AddWaits(const RunFacts& facts, const Profiler& profiler, std::vector<Advice>* advice) {
  std::map<std::string, double> causes;
  double all = 0;
  for (const Profiler::DeviceWait& wait : profiler.waits()) {
    const double share = static_cast<double>(wait.end_ns - wait.start_ns) / facts.times.total;
    causes[WaitCauseText(wait.cause)] += share;
    all += share;
  }
  if (all < kWorthWaits) return;
  const auto most = std::max_element(causes.begin(), causes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  advice->push_back({all, fmt::format("The host waits for devices in {} of the time, most of it because {}.",
                                      Percent(all), most->first)});
}

}  // namespace

std::vector<Advice> AdviceOn(const RunFacts& facts, const Profiler& profiler) {
  std::vector<Advice> advice;
  if (facts.times.total > 0) {
    AddLargest(facts, &advice);
    AddKernels(facts, &advice);
    AddProducts(facts, &advice);
    AddWaits(facts, profiler, &advice);
  }
  if (facts.outside >= kWorthOutside) {
    std::size_t calls = 0;
    for (const SiteFacts& site : facts.sites) calls += site.times.count;
    advice.push_back(
        {facts.outside,
         fmt::format(
             "{} of the time is spent outside of kernels: {} calls a run, each after some bookkeeping. "
             "Larger batches make kernels longer; measuring itself costs here, too.",
             Percent(facts.outside), calls / std::max<std::size_t>(1, facts.times.count))});
  }
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.share > b.share; });
  for (const OutputFacts& output : facts.outputs) {
    if (output.plan.rewired) continue;
    advice.push_back({0, fmt::format("Output '{}' is copied into the caller's memory: {}.", output.name,
                                     output.plan.reason)});
  }
  if (facts.run_times.size() == 1) {
    advice.push_back({0, "This is one run, with what only a first run does. --repeat 20 shows usual times."});
  } else if (facts.run_times.size() >= kRunsForPercentiles &&
             facts.times.p90 > kUnsteady * facts.times.median) {
    advice.push_back(
        {0, fmt::format("One run in ten takes {} or longer, and the usual one {}: other programs may use "
                        "these cores.",
                        DurationText(facts.times.p90), DurationText(facts.times.median))});
  }
  if (!facts.bound.bounded())
    advice.push_back({0, "The memory of a run has no bound, because " + facts.bound.unbounded + "."});
  return advice;
}

}  // namespace rewire::tools
