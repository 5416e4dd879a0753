// SPDX-License-Identifier: Apache-2.0
// Makes requests at the times of a plan, whether earlier ones are answered or not, and measures them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/measure/latency_histogram.h"

namespace rewire::tools {

// One client: it makes a request after the other, on one thread at a time.
class LoadClient {
 public:
  virtual ~LoadClient() = default;
  // Makes one request and waits for the answer.
  virtual Status Call() = 0;
};

struct LoadPlan {
  // Requests a second, with Poisson arrivals: the times between them are exponential. 0: a closed loop, where
  // each client makes its next request when it has the last answer.
  double rate = 0;
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
  // How much longer an open loop waits for requests that have arrived and that no client has been free for.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
  std::uint64_t seed = 0;  // of the arrivals
  bool keep_samples = false;
  // Asked several times a second; the load ends early when it says true. May be empty.
  std::function<bool()> stop;
};

struct LoadResult {
  LoadPlan plan;
  std::chrono::nanoseconds elapsed{0};  // from the first moment of the plan to the last answer
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  // Requests of the plan that no client was free for until the patience ended. Each counts in `latency` with
  // the time that it had waited by then, which is less than the truth.
  std::uint64_t unserved = 0;
  bool stopped = false;
  // From the moment that the plan has for the request to its answer, so that waiting for a free client
  // counts. In a closed loop, from the start of the call. Failed requests are left out.
  LatencyHistogram latency;
  // From the start of the call to its answer.
  LatencyHistogram service;
  std::map<std::string, std::uint64_t> errors;  // messages, at most kMostErrors different ones
  std::vector<std::uint64_t> samples;           // what `latency` counts, if they are kept, in no order

  static constexpr std::size_t kMostErrors = 8;
  double per_second() const;
};

// Runs the plan with one thread for each client. Errors: kRuntimeFailed if a thread cannot be started. A
// failing request is no error of the load.
Result<LoadResult> RunLoad(const LoadPlan& plan, const std::vector<std::unique_ptr<LoadClient>>& clients);

}  // namespace rewire::tools
