// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/load/load.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tools/load/arrivals.h"
#include "rewire/tools/load/load_report.h"

namespace rewire::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class FakeClient final : public LoadClient {
 public:
  explicit FakeClient(std::function<Status()> call) : call_(std::move(call)) {}
  Status Call() override { return call_(); }

 private:
  std::function<Status()> call_;
};

std::vector<std::unique_ptr<LoadClient>> Clients(std::size_t count, const std::function<Status()>& call) {
  std::vector<std::unique_ptr<LoadClient>> clients;
  for (std::size_t i = 0; i < count; ++i) clients.push_back(std::make_unique<FakeClient>(call));
  return clients;
}

std::vector<nanoseconds> Arrivals(const LoadPlan& plan) {
  PoissonArrivals arrivals(plan.rate, plan.duration, plan.seed);
  std::vector<nanoseconds> times;
  while (const std::optional<nanoseconds> at = arrivals.Next()) times.push_back(*at);
  return times;
}

LoadPlan Open(double rate, nanoseconds duration) {
  LoadPlan plan;
  plan.rate = rate;
  plan.duration = duration;
  plan.keep_samples = true;
  return plan;
}

TEST_CASE("arrivals have the rate, and times between them that are exponential") {
  const std::vector<nanoseconds> times = Arrivals(Open(1000, std::chrono::seconds(100)));
  CHECK(times.size() == Approx(100'000).epsilon(0.02));
  double sum = 0, squares = 0, late = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const auto gap = static_cast<double>((times[i] - times[i - 1]).count()) / 1e6;
    CHECK(gap >= 0);
    sum += gap;
    squares += gap * gap;
    late += gap > 2 ? 1 : 0;
  }
  const double count = static_cast<double>(times.size() - 1), mean = sum / count;
  CHECK(mean == Approx(1).epsilon(0.02));
  // An exponential's deviation is its mean, and e^-2 of it lie above twice the mean.
  CHECK(std::sqrt(squares / count - mean * mean) == Approx(1).epsilon(0.03));
  CHECK(late / count == Approx(std::exp(-2)).epsilon(0.05));
  CHECK(times == Arrivals(Open(1000, std::chrono::seconds(100))));
}

TEST_CASE("an open loop makes every request of its plan once, by whichever client is free") {
  std::atomic<std::uint64_t> calls{0};
  const LoadPlan plan = Open(20'000, milliseconds(50));
  const Result<LoadResult> result = RunLoad(plan, Clients(3, [&] {
                                              ++calls;
                                              return Status();
                                            }));
  REQUIRE(result.has_value());
  CHECK(result->succeeded == Arrivals(plan).size());
  CHECK(calls == result->succeeded);
  CHECK(result->failed + result->unserved == 0);
  CHECK(result->latency.count() == result->succeeded);
  CHECK(result->service.count() == result->succeeded);
  CHECK(result->samples.size() == result->succeeded);
  CHECK_FALSE(result->stopped);
}

TEST_CASE("a request that waits for the only client counts from its arrival") {
  const LoadPlan plan = Open(5'000, milliseconds(40));
  bool first = true;
  const Result<LoadResult> result = RunLoad(plan, Clients(1, [&] {
                                              if (std::exchange(first, false))
                                                std::this_thread::sleep_for(milliseconds(60));
                                              return Status();
                                            }));
  REQUIRE(result.has_value());
  // The first call ends 60 ms after its own arrival, or later. Whatever arrives meanwhile has waited since.
  const std::vector<nanoseconds> times = Arrivals(plan);
  REQUIRE(result->latency.count() == times.size());
  double least = 0;
  for (const nanoseconds at : times) least += static_cast<double>((times[0] + milliseconds(60) - at).count());
  CHECK(result->latency.mean() * static_cast<double>(times.size()) >= least);
  CHECK(result->latency.At({10'000}) >= 20'000'000);
  CHECK(result->service.maximum() >= 60'000'000);
}

TEST_CASE("requests that no client is free for are told, and count with the time that they have waited") {
  LoadPlan plan = Open(1'000, milliseconds(40));
  plan.patience = nanoseconds(0);
  const Result<LoadResult> result = RunLoad(plan, Clients(1, [] {
                                              std::this_thread::sleep_for(milliseconds(80));
                                              return Status();
                                            }));
  REQUIRE(result.has_value());
  const std::size_t arrivals = Arrivals(plan).size();
  CHECK(result->succeeded == 1);
  CHECK(result->unserved == arrivals - 1);
  CHECK(result->latency.count() == arrivals);
  CHECK(result->service.count() == 1);
  CHECK(result->latency.minimum() >= 40'000'000);
  CHECK(IsSaturated(*result));
  const LoadRow row = {*result, {}};
  CHECK_THAT(LoadText({row}), Catch::Contains("a rate of 1000 is more than is served here: "));
  CHECK(LoadJson(row)["saturated"] == true);
  CHECK(LoadJson(row)["unserved"] == arrivals - 1);
}

TEST_CASE("a closed loop has one request of each client at a time") {
  LoadPlan plan;
  plan.duration = milliseconds(30);
  std::atomic<int> running{0}, most{0};
  std::atomic<std::uint64_t> calls{0};
  const Result<LoadResult> result = RunLoad(plan, Clients(2, [&] {
                                              most = std::max(most.load(), ++running);
                                              ++calls;
                                              --running;
                                              return Status();
                                            }));
  REQUIRE(result.has_value());
  CHECK(result->succeeded == calls);
  CHECK(calls >= 2);
  CHECK(most <= 2);
  CHECK(result->latency.mean() == result->service.mean());
  CHECK_FALSE(IsSaturated(*result));
  CHECK(LoadJson({*result, {}})["loop"] == "closed");
}

TEST_CASE("a closed loop that is over before its clients begin has one request of each") {
  LoadPlan plan;
  plan.duration = plan.patience = nanoseconds(1);
  const Result<LoadResult> result = RunLoad(plan, Clients(3, [] { return Status(); }));
  REQUIRE(result.has_value());
  CHECK(result->succeeded == 3);
}

TEST_CASE("failures are counted by message, and are not in the latencies") {
  LoadPlan plan = Open(2'000, milliseconds(30));
  std::uint64_t calls = 0;
  const Result<LoadResult> result =
      RunLoad(plan, Clients(1, [&] {
                const std::uint64_t kind = calls++ % 20;
                return kind == 0 ? Status() : Fail(StatusCode::kRuntimeFailed, "kind {}", kind);
              }));
  REQUIRE(result.has_value());
  CHECK(result->succeeded + result->failed == Arrivals(plan).size());
  CHECK(result->latency.count() == result->succeeded);
  CHECK(result->errors.size() == LoadResult::kMostErrors);
  CHECK(result->errors.at("kind 1") == (calls + 18) / 20);
  CHECK_THAT(LoadText({{*result, {}}}), Catch::Contains(" failed: kind 1\n"));
}

TEST_CASE("a load ends early when it is told to, and says so") {
  for (const double rate : {0.0, 1.0}) {
    LoadPlan plan = Open(rate, std::chrono::hours(1));
    plan.stop = [] { return true; };
    const Result<LoadResult> result = RunLoad(plan, Clients(2, [] { return Status(); }));
    REQUIRE(result.has_value());
    CHECK(result->stopped);
    CHECK(result->succeeded == 0);
    CHECK_FALSE(IsSaturated(*result));
  }
}

}  // namespace
}  // namespace rewire::tools
