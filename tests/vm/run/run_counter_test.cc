// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/run_counter.h"

#include <catch2/catch.hpp>
#include <cstdint>

namespace rewire {
namespace {

TEST_CASE("a cancellation that comes late is one of the run that it was meant for") {
  RunCounter runs;
  CHECK(!RunCounter::IsRun(runs.current()));
  runs.Begin();
  const std::uint64_t first = runs.current();  // a thread asks, and is held before it cancels
  CHECK(RunCounter::IsRun(first));
  CHECK(!runs.cancelled());
  runs.End();
  CHECK(!RunCounter::IsRun(runs.current()));
  runs.Begin();
  runs.Cancel(first);
  CHECK(!runs.cancelled());
  runs.Cancel(runs.current());
  CHECK(runs.cancelled());
  runs.Cancel(first);  // it takes nothing back
  CHECK(runs.cancelled());
  runs.End();
  CHECK(!runs.cancelled());
  runs.Begin();
  CHECK(!runs.cancelled());
}

}  // namespace
}  // namespace rewire
