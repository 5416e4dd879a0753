// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/work_meter.h"

#include <algorithm>

namespace rewire {

void WorkMeter::PlanLook() {
  next_look_ = budget_.units == kNever ? kNever : budget_.units + 1;
  if (budget_.deadline == Clock::time_point::max()) return;
  next_look_ = std::min(next_look_, spent_ > kNever - kUnitsPerLook ? kNever : spent_ + kUnitsPerLook);
}

bool WorkMeter::Look() {
  if (stop_ != Stop::kNone) return false;
  if (spent_ > budget_.units) {
    stop_ = Stop::kUnits;
  } else if (budget_.deadline != Clock::time_point::max() && Clock::now() >= budget_.deadline) {
    stop_ = Stop::kDeadline;
  } else {
    PlanLook();
    return true;
  }
  next_look_ = 0;  // every later Spend looks, and is told the same
  return false;
}

Status WorkMeter::Check() { return Look() ? Status() : Failure(); }

Status WorkMeter::ChargeBytes(std::uint64_t bytes) {
  if (stop_ != Stop::kNone) return Failure();
  const std::uint64_t left = budget_.bytes - bytes_;
  bytes_ = bytes > kNever - bytes_ ? kNever : bytes_ + bytes;
  if (bytes <= left) return {};
  stop_ = Stop::kBytes;
  next_look_ = 0;
  return Failure();
}

Status WorkMeter::Failure() const {
  switch (stop_) {
    case Stop::kNone:
      return {};
    case Stop::kUnits:
      return Fail(budget_.units_code,
                  "{} takes {} units of work or more, the limit is {}; raise {} if the file may take more",
                  budget_.stage, spent_, budget_.units, budget_.units_option);
    case Stop::kBytes:
      return Fail(StatusCode::kMemoryLimit,
                  "{} takes {} bytes of memory or more, the limit is {}; raise {} if the file may take more",
                  budget_.stage, bytes_, budget_.bytes, budget_.bytes_option);
    case Stop::kDeadline:
      return Fail(StatusCode::kDeadlineExceeded,
                  "{} has not ended at its deadline, after {} units of work; set {} later", budget_.stage,
                  spent_, budget_.deadline_option);
  }
  return {};
}

}  // namespace rewire
