// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/stops.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/tools/io/register_text.h"

namespace rewire::tools {
namespace {

std::string Described(const Value& value, bool unicode) {
  const std::string content = ContentText(value, unicode);
  const std::string kind = RegisterText(value.any());
  return content.empty() ? kind : kind + "  " + content;
}

}  // namespace

int Stops::AddBreakpoint(std::string text, std::vector<Site> sites, bool temporary) {
  breakpoints_.push_back({++last_number_, std::move(text), std::move(sites), temporary});
  return last_number_;
}

int Stops::AddWatch(std::uint32_t function, RegisterPath path) {
  watches_.push_back({++last_number_, function, std::move(path), std::nullopt, ""});
  return last_number_;
}

bool Stops::Remove(int number) {
  const auto is_it = [number](const auto& stop) { return stop.number == number; };
  return std::erase_if(breakpoints_, is_it) + std::erase_if(watches_, is_it) > 0;
}

void Stops::RemoveAll() {
  breakpoints_.clear();
  watches_.clear();
}

bool Stops::IsBreakpoint(const Site& site) const {
  for (const Breakpoint& breakpoint : breakpoints_) {
    const auto& sites = breakpoint.sites;
    if (std::find(sites.begin(), sites.end(), site) != sites.end()) return true;
  }
  return false;
}

std::string Stops::Text() const {
  std::string text;
  for (const Breakpoint& breakpoint : breakpoints_) {
    std::string places;
    for (std::size_t i = 0; i < breakpoint.sites.size() && i < 4; ++i) {
      places += (i == 0 ? "" : ", ") + SiteText(module_, breakpoint.sites[i]);
    }
    if (breakpoint.sites.size() > 4) places += fmt::format(" and {} more", breakpoint.sites.size() - 4);
    text += fmt::format("{:>4}  break {} ({}), stopped {} times\n", breakpoint.number, breakpoint.text,
                        places, breakpoint.hits);
  }
  for (const Watch& watch : watches_) {
    text += fmt::format("{:>4}  watch {} in {}\n", watch.number, watch.path.text,
                        module_.functions[watch.function].name);
  }
  return text;
}

void Stops::BeginRun() {
  for (Watch& watch : watches_) watch.seen.reset();
}

void Stops::Go(Pace pace, std::uint64_t count, std::uint32_t depth) {
  pace_ = pace;
  count_ = count;
  depth_ = depth;
}

std::string Stops::Changes(const CallStack& stack) {
  std::string changes;
  for (Watch& watch : watches_) {
    const StackFrame* frame = stack.FrameOf(watch.function);
    if (frame == nullptr) {
      watch.seen.reset();
      continue;
    }
    const RewireFFIAny& any = frame->registers[watch.path.reg];
    // A register that holds no such part yet shows as the whole.
    const Result<Value> part = FollowPath(ShareRegister(any), watch.path);
    const Value value = part ? *part : ShareRegister(any);
    const std::uint64_t now = Fingerprint(value);
    if (watch.seen == now) continue;
    const std::string holds = Described(value, unicode_);
    if (watch.seen) {
      changes += fmt::format("watch {}: {} has changed\n  before  {}\n  now     {}\n", watch.number,
                             watch.path.text, watch.before, holds);
    }
    watch.seen = now;
    watch.before = holds;
  }
  return changes;
}

void Stops::LookAtWatches(const CallStack& stack) { Changes(stack); }

bool Stops::PaceEnds(std::uint32_t depth) {
  switch (pace_) {
    case Pace::kContinue:
      return false;
    case Pace::kStep:
      return --count_ == 0;
    case Pace::kNext:
      return depth <= depth_ && --count_ == 0;
    case Pace::kFinish:
      return depth < depth_;
  }
  return false;
}

std::optional<std::string> Stops::Arrive(const CallStack& stack) {
  const Site& site = stack.frame(0).site;
  std::string reason = Changes(stack);
  for (Breakpoint& breakpoint : breakpoints_) {
    const auto& sites = breakpoint.sites;
    if (std::find(sites.begin(), sites.end(), site) == sites.end()) continue;
    ++breakpoint.hits;
    reason += breakpoint.temporary ? fmt::format("arrived at {}\n", breakpoint.text)
                                   : fmt::format("breakpoint {}, {}\n", breakpoint.number, breakpoint.text);
  }
  const bool ends = PaceEnds(stack.depth());
  if (reason.empty() && !ends) return std::nullopt;
  if (pace_ == Pace::kContinue && --count_ > 0) return std::nullopt;
  std::erase_if(breakpoints_, [](const Breakpoint& breakpoint) { return breakpoint.temporary; });
  return reason;
}

}  // namespace rewire::tools
