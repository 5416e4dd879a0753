// SPDX-License-Identifier: Apache-2.0
// kernel_drill [--seed N] [--calls N] [--kernel NAME] [--library PATH]... [--coverage]: calls every stock
// kernel with arguments and attributes that a hostile file may give it, by themselves, without a VM.
//
// --coverage prints a line for each kernel: calls, successes, calls in which it asked whether to go on, and
// the longest time between two such questions, which says something in an optimized build alone.
//
// Half of the calls are nearly right, or made right by what the kernel's error says it expects; the others
// are calls that succeeded with something spoilt. The same seed makes the same calls. A sanitizer's report, a
// kernel that does not ask whether to go on, that goes on when told to stop, or that takes a minute ends the
// run with the call's text.
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/tests/fuzz/kernels/catalogue.h"
#include "rewire/tests/fuzz/kernels/generator.h"
#include "rewire/tests/fuzz/kernels/host.h"

namespace rewire::test {
namespace {

struct Options {
  std::uint64_t seed = 1;
  std::int64_t calls = 100000;
  std::string kernel;
  std::vector<std::string> libraries;  // of kernels, besides kernels/cpu
  bool coverage = false;
};

// One kernel's share of the drill.
struct Share {
  const KernelOf* kernel = nullptr;
  std::vector<Call> good;  // some of those that succeeded
  std::int64_t calls = 0, succeeded = 0, skipped = 0, asked = 0;
  double longest_gap = 0;  // microseconds
  std::string last_error;
};

constexpr std::size_t kKept = 16;
constexpr int kRepairs = 8;

class Drill {
 public:
  Drill(Share* share, Dice& dice) : share_(share), dice_(dice) {}

  void Next() {
    if (!share_->good.empty() && dice_.OneIn(2)) {
      Call call = dice_.Of(share_->good);
      const std::int64_t faults = 1 + dice_.Below(3);
      for (std::int64_t i = 0; i < faults; ++i) Spoil(*share_->kernel, dice_, &call);
      Try(call);
      return;
    }
    Call call = NearlyValid(*share_->kernel, dice_);
    for (int i = 0; i < kRepairs; ++i) {
      const Outcome outcome = Try(call);
      if (outcome.succeeded || outcome.skipped || !Repair(*share_->kernel, outcome.error, dice_, &call))
        return;
    }
  }

 private:
  Outcome Try(const Call& call) {
    static const std::vector<std::int64_t> kQuestions = {0, 1, 2, 5, 40, 40, 40, 200};
    alarm(60);
    Outcome outcome = Run(share_->kernel->entry, call, dice_.Of(kQuestions));
    alarm(0);
    share_->skipped += outcome.skipped ? 1 : 0;
    if (outcome.skipped) return outcome;
    ++share_->calls;
    share_->longest_gap = std::max(share_->longest_gap, outcome.longest_gap);
    share_->asked += outcome.questions > 0 ? 1 : 0;
    if (!outcome.succeeded) share_->last_error = outcome.error;
    if (!outcome.succeeded) return outcome;
    ++share_->succeeded;
    if (share_->good.size() < kKept)
      share_->good.push_back(call);
    else if (dice_.OneIn(8))
      share_->good[static_cast<std::size_t>(dice_.Below(kKept))] = call;
    return outcome;
  }

  Share* share_;
  Dice& dice_;
};

Options ReadOptions(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--coverage") {
      options.coverage = true;
      continue;
    }
    if (i + 1 == count) {
      std::fprintf(stderr, "kernel_drill: %s needs a value\n", name.c_str());
      std::exit(2);
    }
    const char* value = arguments[++i];
    if (name == "--seed") options.seed = std::strtoull(value, nullptr, 10);
    if (name == "--calls") options.calls = std::strtoll(value, nullptr, 10);
    if (name == "--kernel") options.kernel = value;
    if (name == "--library") options.libraries.emplace_back(value);
  }
  return options;
}

int Main(const Options& options) {
  const std::vector<KernelOf> kernels = AllKernels(options.libraries);
  std::vector<Share> shares;
  for (const KernelOf& kernel : kernels) {
    if (options.kernel.empty() || kernel.entry.name == options.kernel)
      shares.push_back({&kernel, {}, 0, 0, 0, 0, 0, ""});
  }
  if (shares.empty()) {
    std::fprintf(stderr, "kernel_drill: there is no kernel %s\n", options.kernel.c_str());
    return 2;
  }
  Dice dice(options.seed);
  std::int64_t calls = 0, succeeded = 0;
  while (calls < options.calls) {
    for (Share& share : shares) {
      const std::int64_t before = share.calls;
      Drill(&share, dice).Next();
      calls += share.calls - before;
    }
  }
  // Few of the calls that are drawn for some kernels are valid, and which of them come first changes with
  // every row. Such a kernel gets more calls until one succeeds.
  const int more = options.calls > 0 ? 5000 : 0;
  for (Share& share : shares) {
    const std::int64_t before = share.calls;
    for (int i = 0; i < more && share.succeeded == 0; ++i) Drill(&share, dice).Next();
    calls += share.calls - before;
  }
  std::int64_t never = 0, seldom = 0, silent = 0;
  for (const Share& share : shares) {
    succeeded += share.succeeded;
    never += share.succeeded == 0 ? 1 : 0;
    silent += share.asked == 0 ? 1 : 0;
    seldom += share.succeeded * 20 < share.calls ? 1 : 0;
    if (options.coverage || share.succeeded == 0) {
      std::printf("%-40s %8lld calls %8lld succeeded %6lld asked %8.0f us %s\n",
                  share.kernel->entry.name.c_str(), static_cast<long long>(share.calls),
                  static_cast<long long>(share.succeeded), static_cast<long long>(share.asked),
                  share.longest_gap, share.succeeded == 0 ? share.last_error.c_str() : "");
    }
  }
  std::printf(
      "kernel_drill: seed %llu, %zu kernels, %lld calls, %lld succeeded; %lld kernels below 5 %%, %lld "
      "never; "
      "%lld never asked, at most %llu branches between two questions\n",
      static_cast<unsigned long long>(options.seed), shares.size(), static_cast<long long>(calls),
      static_cast<long long>(succeeded), static_cast<long long>(seldom), static_cast<long long>(never),
      static_cast<long long>(silent), static_cast<unsigned long long>(MostBetweenQuestions()));
  return never == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rewire::test

int main(int count, char** arguments) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  __sanitizer_set_death_callback(&rewire::test::PrintRunning);
#endif
#endif
  std::signal(SIGALRM, [](int) { rewire::test::Report("the kernel takes longer than a minute"); });
  return rewire::test::Main(rewire::test::ReadOptions(count, arguments));
}
