// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "rewire/executable_format/names/source_note.h"
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

// "transpose" of "rewire.transpose"; empty for kernels that compute shapes.
std::string_view KindOf(const SiteFacts& site) {
  const std::string_view kernel = site.site->kernel;
  return !names::IsShapeFunction(kernel) ? kernel.substr(kernel.rfind('.') + 1) : "";
}

// "Conv 'c'", "Sqrt 'a' and 7 more nodes".
std::string PlaceOf(const SiteFacts& site) {
  if (site.site->node.empty()) return fmt::format("'{}'", site.site->name);
  const std::vector<std::string_view> nodes = NodesOf(site.site->node);
  const std::string first(nodes.front());
  if (nodes.size() == 1) return first;
  return fmt::format("{} and {} more node{}", first, nodes.size() - 1, nodes.size() == 2 ? "" : "s");
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
  const auto add = [&](double worth, const auto& wanted, const auto& text, const char* action) {
    const std::vector<const SiteFacts*> sites =
        Chosen(facts, [&](const SiteFacts& site) { return wanted(KindOf(site)); });
    if (const double share = ShareOf(sites); share >= worth)
      advice->push_back({share, text(share, sites), action});
  };
  using Sites = std::vector<const SiteFacts*>;
  add(
      kWorthOrder, [](std::string_view kind) { return kind == "transpose"; },
      [](double share, const Sites& sites) {
        const std::string beside = Neighbor(sites);
        return fmt::format("Transposes{} take {} of the time: {}.", beside.empty() ? "" : " around " + beside,
                           Percent(share), Places(sites));
      },
      "Export the model with its axes in one order throughout, which needs no transposes.");
  add(
      kWorthCopies,
      [](std::string_view kind) {
        return IsOneOf(kind, {"concat", "slice", "dynamic_slice", "split", "pad", "dynamic_pad", "expand",
                              "tile", "copy", "gather", "gather_elements", "scatter_elements", "scatter_nd"});
      },
      [](double share, const Sites& sites) {
        return fmt::format("Copies of data (concat, slice, pad and the like) take {} of the time: {}.",
                           Percent(share), Places(sites));
      },
      "Sizes that are fixed while compiling (vm-compile --dim N=SIZE) let more parts be written where they "
      "end up.");
  add(
      kWorthCasts,
      [](std::string_view kind) {
        return IsOneOf(kind, {"cast", "cast_narrow", "quantize_linear", "dequantize_linear", "requantize"});
      },
      [](double share, const Sites& sites) {
        return fmt::format("Conversions between dtypes take {} of the time: {}.", Percent(share),
                           Places(sites));
      },
      "Keep one dtype between the operators that are fast in it.");
}

// How many times what the CPU needs a call takes, if that is many and its time is worth a word; else 0.
double SlownessOf(const SiteFacts& site) {
  if (site.share < kWorthProduct || site.work.operations == 0 || site.attainable == 0) return 0;
  const double times = site.times.median / site.attainable;
  return times < kSlowProduct ? 0 : times;
}

// The kernel that most of the time goes to, where one stands out.
void AddLargest(const RunFacts& facts, std::vector<Advice>* advice) {
  std::map<std::string_view, std::vector<const SiteFacts*>> kernels;
  for (const SiteFacts& site : facts.sites) kernels[site.site->kernel].push_back(&site);
  for (const auto& [kernel, sites] : kernels) {
    const double share = ShareOf(sites);
    // AddProducts says more of a single slow one.
    if (share < kWorthKernel || (sites.size() == 1 && SlownessOf(*sites[0]) > 0)) continue;
    const std::string places = sites.size() == 1 ? "in one place" : fmt::format("in {} places", sites.size());
    advice->push_back({share,
                       fmt::format("The kernel {} takes {} of the time, {}: {}.", kernel, Percent(share),
                                   places, Places(sites)),
                       sites.front()->work.operations > 0
                           ? "vm-compile --precision bf16, or int8 with samples, makes products shorter; "
                             "--threads uses more cores."
                           : ""});
  }
}

void AddProducts(const RunFacts& facts, std::vector<Advice>* advice) {
  for (const SiteFacts& site : facts.sites) {
    const double times = SlownessOf(site);
    if (times == 0) continue;
    const bool packed = site.site->kernel.find(".packed.") != std::string::npos ||
                        site.site->kernel.find(".onednn.") != std::string::npos;
    advice->push_back(
        {site.share,
         fmt::format(
             "{} takes {} of the time, {:.1f} times what this CPU needs for so many operations and bytes.",
             PlaceOf(site), Percent(site.share), times),
         packed ? "Larger batches let it work on more at a time."
                : "Its weights are not packed. vm-compile packs weights that are constants or parameters."});
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
  advice->push_back(
      {all,
       fmt::format("The host waits for devices in {} of the time, most of it because {}.", Percent(all),
                   most->first),
       "vm-run --record-device repeats the work with one call of the driver; inputs and outputs in "
       "the device's memory need no copies."});
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
         fmt::format("{} of the time is spent outside of kernels: {} calls a run, each after some "
                     "bookkeeping, of which measuring is a part.",
                     Percent(facts.outside), calls / std::max<std::size_t>(1, facts.times.count)),
         "Larger batches make kernels longer. vm-run --repeat without --profile and --report says what "
         "measuring costs."});
  }
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.share > b.share; });
  for (const OutputFacts& output : facts.outputs) {
    if (output.plan.rewired) continue;
    advice.push_back(
        {0,
         fmt::format("Output '{}' is copied into the caller's memory: {}.", output.name, output.plan.reason),
         ""});
  }
  if (facts.run_times.size() == 1) {
    advice.push_back(
        {0, "This is one run, with what only a first run does.", "--repeat 20 shows usual times."});
  } else if (!facts.disturbed.empty()) {
    advice.push_back(
        {0,
         fmt::format("{} of {} runs took more than {} times the median of {}, up to {}. Ranks and "
                     "shares are by medians, which such runs do not change.",
                     facts.disturbed.size(), facts.run_times.size(), kDisturbed,
                     DurationText(facts.times.median), DurationText(facts.times.maximum)),
         "End other programs on these cores, or use fewer of them (--threads)."});
  }
  if (!facts.bound.bounded()) {
    advice.push_back({0, "The memory of a run has no bound, because " + facts.bound.unbounded + ".",
                      "Largest sizes of its dimensions give it one (vm-compile --max-dim N=SIZE)."});
  }
  return advice;
}

}  // namespace rewire::tools
