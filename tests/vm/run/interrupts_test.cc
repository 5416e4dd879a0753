// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/interrupts.h"

#include <catch2/catch.hpp>
#include <chrono>

namespace rewire {
namespace {

using Clock = std::chrono::steady_clock;

TEST_CASE("a cancellation is of the run that is going on, and of no other") {
  Interrupts interrupts;
  interrupts.Cancel();  // between runs
  CHECK(interrupts.flags() == 0);
  interrupts.BeginRun();
  CHECK(interrupts.Check());
  interrupts.Cancel();
  CHECK(interrupts.Has(Interrupts::kCancelRequested));
  CHECK(interrupts.cancelled());
  CHECK(interrupts.Check().code() == StatusCode::kCancelled);
  interrupts.EndRun();
  CHECK_FALSE(interrupts.cancelled());
  interrupts.BeginRun();
  CHECK(interrupts.flags() == 0);
  CHECK(interrupts.Check());
}

TEST_CASE("a deadline holds until another one is set, and a cancellation is told before it") {
  Interrupts interrupts;
  interrupts.SetDeadline(Clock::now() + std::chrono::hours(24));
  CHECK(interrupts.flags() == Interrupts::kHasDeadline);
  CHECK_FALSE(interrupts.late());
  interrupts.SetDeadline(Clock::now());
  CHECK(interrupts.late());
  interrupts.BeginRun();
  CHECK(interrupts.Check().code() == StatusCode::kDeadlineExceeded);
  interrupts.Cancel();
  CHECK(interrupts.Check().code() == StatusCode::kCancelled);
  interrupts.EndRun();
  interrupts.SetDeadline(Clock::time_point::max());
  interrupts.BeginRun();
  CHECK(interrupts.flags() == 0);
  CHECK(interrupts.Check());
}

TEST_CASE("flags come and go without each other") {
  Interrupts interrupts;
  interrupts.Set(Interrupts::kObserved);
  interrupts.Set(Interrupts::kInFlight);
  interrupts.BeginRun();
  CHECK(interrupts.flags() == (Interrupts::kObserved | Interrupts::kInFlight));
  interrupts.Clear(Interrupts::kObserved);
  CHECK(interrupts.flags() == Interrupts::kInFlight);
  CHECK_FALSE(interrupts.Has(Interrupts::kObserved));
}

}  // namespace
}  // namespace rewire
