// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <utility>

namespace rewire::hostile {
namespace {

// Mutants of one child: many, as a fork takes milliseconds.
constexpr std::uint64_t kBatch = 1000;
// Findings of one kind that are printed: they may have several causes.
constexpr std::uint64_t kPrinted = 20;

struct Found {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
};

std::set<std::string> ReadKinds(const std::string& path) {
  std::set<std::string> kinds;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') kinds.insert(line);
  }
  return kinds;
}

}  // namespace

void Counts::Add(const Verdict& verdict) {
  ++mutants;
  read += verdict.read ? 1 : 0;
  verified += verdict.verified ? 1 : 0;
  linked += verdict.linked ? 1 : 0;
  run += verdict.runs > 0 ? 1 : 0;
  good += verdict.good_runs > 0 ? 1 : 0;
  bound += verdict.bound_runs > 0 ? 1 : 0;
  calls += verdict.runs;
}

Counts& Counts::operator+=(const Counts& other) {
  mutants += other.mutants;
  read += other.read;
  verified += other.verified;
  linked += other.linked;
  run += other.run;
  good += other.good;
  bound += other.bound;
  calls += other.calls;
  return *this;
}

std::string Counts::Text() const {
  return fmt::format(
      "{} mutants: {} past the reader, {} past the verifier, {} linked, {} run ({} with a result, {} of them "
      "with outputs "
      "bound), {} calls",
      mutants, read, verified, linked, run, good, bound, calls);
}

bool RunCampaign(const std::function<Bytes(std::uint64_t)>& make, const JudgeFunction& judge,
                 const CampaignOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Counts counts;
  const std::set<std::string> known = ReadKinds(options.known);
  std::map<std::string, Found> found;
  double reported = 0;
  const auto is_done = [&] {
    // Both, where both are given.
    const bool counted = options.read != 0 || options.run != 0;
    return (counted && counts.read >= options.read && counts.run >= options.run) ||
           (options.seconds != 0 && seconds() >= static_cast<double>(options.seconds));
  };
  const std::uint64_t end = options.mutants == 0 ? ~std::uint64_t{0} : options.first + options.mutants;
  for (std::uint64_t at = options.first; at < end && !is_done();) {
    const std::uint64_t last = std::min(end, at + kBatch);
    std::uint64_t number = at;
    const ChildReport report = JudgeInChild(
        [&](Task* task) {
          if (number == last) return false;
          *task = {number, make(number)};
          ++number;
          return true;
        },
        judge);
    // A child that ended before it judged anything must not be tried for ever.
    at = !report.ended_early ? last : std::max(report.ended_at, at) + 1;
    counts += report.counts;
    counts.mutants += report.ended_early ? 1 : 0;
    for (const auto& [mutant, findings] : report.findings) {
      for (const Finding& finding : findings) {
        Found& entry = found[finding.kind];
        if (entry.count++ == 0) entry.first = mutant;
        if (entry.count <= kPrinted && !known.contains(finding.kind))
          fmt::print("found: {}, mutant {}: {}\n", finding.kind, mutant, finding.text);
      }
    }
    if (seconds() - reported > 60) {
      reported = seconds();
      fmt::print("{:.0f} s: {}\n", reported, counts.Text());
    }
    std::fflush(stdout);
  }
  fmt::print("{} in {:.0f} s\n", counts.Text(), seconds());
  std::size_t unknown = 0;
  for (const auto& [kind, entry] : found) {
    const bool is_known = known.contains(kind);
    unknown += is_known ? 0 : 1;
    fmt::print("{} x {}{}, first mutant {}\n", entry.count, kind, is_known ? " (known)" : "", entry.first);
  }
  fmt::print("{} kinds of findings, {} of them new\n", found.size(), unknown);
  return unknown == 0;
}

}  // namespace rewire::hostile
