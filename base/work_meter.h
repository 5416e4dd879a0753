// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/work_meter.h>.
//
// WorkMeter: counts the work and memory that opening or linking a file takes, and stops at the host's limits.
//
// Files may come from strangers, so the host decides how much verifying and linking may cost. Work is counted
// in units, not in seconds, so that the same file always gives the same answer. A unit is about one
// instruction, record or set member looked at. Hosts that also want a time limit set a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "rewire/base/export.h"
#include "rewire/base/status.h"

namespace rewire {

class WorkMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // The limits, and the texts for error messages. All texts have static storage.
  struct Budget {
    const char* stage = "";  // what is being done: "verifying"
    std::uint64_t units = std::numeric_limits<std::uint64_t>::max();
    const char* units_option = "";  // the option that raises the limit: "FormatLimits::verifier_steps"
    StatusCode units_code = StatusCode::kStepLimit;
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
    const char* bytes_option = "";
    Clock::time_point deadline = Clock::time_point::max();
    const char* deadline_option = "";
  };

  explicit WorkMeter(const Budget& budget) : budget_(budget) { PlanLook(); }

  // Counts work that is about to be done. Returns false once the budget is spent or the deadline has passed,
  // and on every later call. Failure() then says why.
  bool Spend(std::uint64_t units) {
    spent_ = units > kNever - spent_ ? kNever : spent_ + units;
    return spent_ < next_look_ || Look();
  }
  Status Charge(std::uint64_t units) { return Spend(units) ? Status() : Failure(); }
  // Checks the deadline now.
  REWIRE_API Status Check();

  // Counts memory before it is allocated. Fails with kMemoryLimit.
  Status ChargeBytes(std::uint64_t bytes);

  bool exhausted() const { return stop_ != Stop::kNone; }
  // For an exhausted meter: a failure that names the stage, the limit, the amount reached and the option that
  // raises the limit. Otherwise OK.
  REWIRE_API Status Failure() const;

  std::uint64_t spent() const { return spent_; }
  std::uint64_t left() const { return spent_ < budget_.units ? budget_.units - spent_ : 0; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_left() const { return bytes_ < budget_.bytes ? budget_.bytes - bytes_ : 0; }
  const Budget& budget() const { return budget_; }

 private:
  enum class Stop : std::uint8_t { kNone, kUnits, kBytes, kDeadline };
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  // Units between two looks at the clock; this many take well below a millisecond.
  static constexpr std::uint64_t kUnitsPerLook = 1u << 16;

  REWIRE_API void PlanLook();
  [[gnu::cold]] REWIRE_API bool Look();

  Budget budget_;
  std::uint64_t spent_ = 0;
  std::uint64_t next_look_ = 0;  // the value of `spent_` at which the limits are checked next
  std::uint64_t bytes_ = 0;
  Stop stop_ = Stop::kNone;
};

}  // namespace rewire
