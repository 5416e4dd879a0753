// SPDX-License-Identifier: Apache-2.0
// The tests give the times of the machines on which requests run together or alone.
#include "rewire/serve/run/batch_costs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace rewire::serve {
namespace {

constexpr BatchCosts::Kind kKind = 1;

// A model on a machine: what its runs take, in nanoseconds.
class Machine {
 public:
  using RowCost = std::function<double(std::int64_t rows, bool together)>;
  explicit Machine(RowCost row_ns) : row_ns(std::move(row_ns)) {}

  // As many requests of one row wait. Runs what is chosen, and returns how many requests that are.
  std::size_t Run(std::size_t waiting, BatchCosts::Kind kind = kKind) {
    std::vector<std::int64_t> rows_up_to;
    for (std::size_t i = 1; i <= waiting; ++i) rows_up_to.push_back(static_cast<std::int64_t>(i));
    const std::size_t count = costs.Choose(kind, rows_up_to);
    Took(static_cast<std::int64_t>(count), count > 1, kind);
    return count;
  }
  void Took(std::int64_t rows, bool together, BatchCosts::Kind kind = kKind) {
    const double took = row_ns(rows, together) * static_cast<double>(rows);
    ns += took;
    rows_of[together ? rows : 0] += rows;
    if (costs.Wants(kind, rows, together)) {
      ++timed;
      costs.Add(kind, rows, together, static_cast<std::uint64_t>(took));
    } else {
      costs.Pass(kind, rows, together);
    }
  }
  // Runs `times` times, and returns the part of the rows that ran so: in batches of this size, or alone if it
  // is 0.
  double Part(std::int64_t size, std::size_t waiting, int times = 2000) {
    rows_of.clear();
    for (int i = 0; i < times; ++i) Run(waiting);
    double all = 0;
    for (const auto& [of, rows] : rows_of) all += static_cast<double>(rows);
    return static_cast<double>(rows_of[size]) / all;
  }

  RowCost row_ns;
  BatchCosts costs;
  double ns = 0;
  int timed = 0;
  std::map<std::int64_t, std::int64_t> rows_of;
};

double Same(std::int64_t, bool) { return 1000; }
double Cheaper(std::int64_t rows, bool) { return 1000.0 / static_cast<double>(rows) + 200; }
double Dearer(std::int64_t, bool together) { return together ? 1200 : 1000; }
// Four rows fit into a cache.
double BestOfFour(std::int64_t rows, bool) { return rows == 1 ? 1000 : rows <= 4 ? 700 : 950; }

// How many requests ran together in each of the first runs, of those that wait.
std::vector<std::size_t> FirstRuns(Machine* machine, std::size_t waiting, int runs) {
  std::vector<std::size_t> counts;
  for (int i = 0; i < runs; ++i) counts.push_back(machine->Run(waiting));
  return counts;
}

TEST_CASE("batch costs: an unknown model is measured from below, and no further than rows get cheaper") {
  Machine cheaper(Cheaper);
  CHECK(FirstRuns(&cheaper, 7, 12) == std::vector<std::size_t>{1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4});
  CHECK(cheaper.Run(7) == 7);
  Machine dearer(Dearer);
  CHECK(FirstRuns(&dearer, 7, 8) == std::vector<std::size_t>{1, 1, 1, 1, 2, 2, 2, 2});
  CHECK(dearer.Run(2) == 1);
}

TEST_CASE("batch costs: long runs are measured less often") {
  Machine machine([](std::int64_t rows, bool) { return 1e7 / static_cast<double>(rows); });
  CHECK(FirstRuns(&machine, 4, 6) == std::vector<std::size_t>{1, 1, 2, 2, 4, 4});
}

TEST_CASE("batch costs: batches form where a row costs less in them") {
  Machine machine(Cheaper);
  machine.Part(16, 16);
  CHECK(machine.Part(16, 16) > 0.99);
  CHECK(machine.costs.statistics().declined == 0);
  CHECK(machine.costs.statistics().alone_row_ns == Approx(1200));
  CHECK(machine.costs.statistics().batch_row_ns == Approx(262.5));
}

TEST_CASE("batch costs: requests run alone where a row costs more in a batch, or as much") {
  for (const auto& row_ns : {Machine::RowCost(Dearer), Machine::RowCost(Same)}) {
    Machine machine(row_ns);
    machine.Part(0, 16);
    CHECK(machine.Part(0, 16, 20000) > 0.97);
    CHECK(machine.costs.statistics().declined > 1000);
  }
}

TEST_CASE("batch costs: a choice to run alone holds for all requests that it was made for") {
  Machine machine(Dearer);
  CHECK_FALSE(machine.costs.RunsAlone(kKind));
  machine.Part(0, 16);
  while (machine.costs.RunsAlone(kKind)) machine.Took(1, false);
  const std::uint64_t declined = machine.costs.statistics().declined;
  REQUIRE(machine.Run(5) == 1);
  CHECK_FALSE(machine.costs.RunsAlone(kKind + 1));
  for (int i = 0; i < 4; ++i) {
    CHECK(machine.costs.RunsAlone(kKind));
    machine.Took(1, false);
  }
  CHECK_FALSE(machine.costs.RunsAlone(kKind));
  CHECK(machine.costs.statistics().declined == declined + 4);  // the last one was by itself
  Machine cheaper(Cheaper);
  cheaper.Part(16, 16);
  REQUIRE(cheaper.Run(16) == 16);
  CHECK_FALSE(cheaper.costs.RunsAlone(kKind));
}

TEST_CASE("batch costs: looking for something better takes a small part of the time") {
  for (const auto& row_ns :
       {Machine::RowCost(Dearer), Machine::RowCost(Cheaper), Machine::RowCost(BestOfFour)}) {
    Machine machine(row_ns);
    machine.Part(0, 16);
    machine.ns = 0;
    double rows = 0;
    for (int i = 0; i < 20000; ++i) rows += static_cast<double>(machine.Run(16));
    const double best = std::min({row_ns(1, false), row_ns(4, true), row_ns(16, true)});
    CHECK(machine.ns < 1.01 * best * rows);
  }
}

TEST_CASE("batch costs: a batch has the size at which a row costs least") {
  Machine machine(BestOfFour);
  machine.Part(4, 16);
  CHECK(machine.Part(4, 16) > 0.95);
  CHECK(machine.Part(4, 5) > 0.95);
}

TEST_CASE("batch costs: what a few runs have taken by chance changes nothing") {
  Machine machine(Cheaper);
  machine.Part(16, 16);
  for (int i = 0; i < 3; ++i) machine.costs.Add(kKind, 16, true, 100000000);
  CHECK(machine.Part(16, 16) > 0.95);
}

TEST_CASE("batch costs: a machine that changes is measured again") {
  Machine machine(Cheaper);
  machine.Part(16, 16);
  machine.row_ns = Dearer;
  machine.Part(0, 16);
  CHECK(machine.Part(0, 16, 20000) > 0.97);
  machine.row_ns = Cheaper;
  machine.Part(16, 16, 40000);
  CHECK(machine.Part(16, 16) > 0.95);
}

TEST_CASE("batch costs: most runs need no time taken") {
  Machine machine(Cheaper);
  machine.Part(16, 16);
  machine.timed = 0;
  machine.Part(16, 16);
  CHECK(machine.timed > 2000 / 20);
  CHECK(machine.timed < 2000 / 4);
}

TEST_CASE("batch costs: nothing waits for a batch that will not be formed") {
  Machine machine(Dearer);
  CHECK(machine.costs.RowsToWaitFor(kKind, 1, 32) == 32);  // nothing is known
  machine.Part(0, 16);
  CHECK(machine.costs.RowsToWaitFor(kKind, 1, 32) == 1);
  CHECK(machine.costs.RowsToWaitFor(kKind + 1, 1, 32) == 32);
  Machine four(BestOfFour);
  four.Part(4, 16);
  CHECK(four.costs.RowsToWaitFor(kKind, 1, 32) == 4);
  CHECK(four.costs.RowsToWaitFor(kKind, 1, 3) == 3);
  Machine cheaper(Cheaper);
  cheaper.Part(16, 16);
  CHECK(cheaper.costs.RowsToWaitFor(kKind, 1, 32) == 32);  // there were never more than 16
}

TEST_CASE("batch costs: rows of another size have costs of their own, and those of few kinds are kept") {
  Machine machine(Dearer);
  machine.Part(0, 16);
  CHECK(machine.costs.RowsToWaitFor(kKind, 1, 32) == 1);
  CHECK(machine.costs.RowsToWaitFor(2, 1, 32) == 32);
  for (BatchCosts::Kind kind = 3; kind < 100; ++kind) machine.Run(16, kind);
  CHECK(machine.costs.RowsToWaitFor(kKind, 1, 32) == 32);  // forgotten
}

TEST_CASE("batch costs: rows within a quarter are of one kind") {
  CHECK(BatchCosts::KindOf(0) == 0);
  std::uint64_t first = 1;
  for (std::uint64_t bytes = 1; bytes < 100000; ++bytes) {
    if (BatchCosts::KindOf(bytes) == BatchCosts::KindOf(bytes - 1)) {
      CHECK(static_cast<double>(bytes) < 1.25 * static_cast<double>(first));
    } else {
      CHECK(BatchCosts::KindOf(bytes) > BatchCosts::KindOf(bytes - 1));
      first = bytes;
    }
  }
  CHECK(BatchCosts::KindOf(~std::uint64_t{0}) < 300);
}

TEST_CASE("batch costs: requests of several rows are compared with what they cost alone") {
  // Two rows of one request are as cheap as they are in a batch.
  Machine machine([](std::int64_t rows, bool) { return rows == 1 ? 1000.0 : 500.0; });
  const std::vector<std::int64_t> ones = {1, 2, 3, 4};
  const std::vector<std::int64_t> twos = {2, 4};
  for (int i = 0; i < 2000; ++i) {
    const auto& waiting = i % 2 == 0 ? ones : twos;
    const std::size_t count = machine.costs.Choose(kKind, waiting);
    machine.Took(waiting[count - 1], count > 1);
  }
  CHECK(machine.costs.Choose(kKind, ones) == 4);
  CHECK(machine.costs.Choose(kKind, twos) == 1);
}

}  // namespace
}  // namespace rewire::serve
