// SPDX-License-Identifier: Apache-2.0
// The order of a collective's work with the run's, as the simulated CUDA driver has seen it.
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/simulated_cuda/control.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

using simulated_cuda::Control;
using simulated_cuda::LogEntry;

const Control& Simulation() {
  static const Control kControl = [] {
    Control control;
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(library != nullptr);
    REQUIRE(control.Load([library](const char* name) { return dlsym(library, name); }));
    return control;
  }();
  return kControl;
}

std::vector<std::string> Violations() {
  std::vector<std::string> all;
  while (const char* each = Simulation().Violation(all.size())) all.emplace_back(each);
  return all;
}

// The sum of the sums of x, in place, and a gather of them.
constexpr char kChain[] = R"(
    .device gpu = cuda:0
    .kernel sum = "rewire.device.collective.all_reduce" {channel = 40}
    .kernel gather = "rewire.device.collective.all_gather" {channel = 40}
    .func main(x: f32[4]) -> f32[N]
      %d = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=64, f32[4], gpu
      %y = alloc_tensor %s, _, f32[4]
      invoke_packed sum(%d, %y), outputs=1
      invoke_packed sum(%y, %y), outputs=1
      %t = alloc_storage _, alignment=64, f32[N], gpu
      %z = alloc_tensor %t, _, f32[N]
      invoke_packed gather(%y, %z), outputs=1
      %h = device_copy %z, gpu, cpu
      ret %h
    .end
)";

int Ranks() {
  const char* ranks = std::getenv("REWIRE_COLLECTIVE_RANKS");
  if (ranks == nullptr) ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  return ranks == nullptr ? 1 : std::atoi(ranks);
}

// [N] stands for the size of a gathered result.
Program LinkedOf(std::string text) {
  const std::string size = std::to_string(4 * Ranks());
  for (std::size_t at; (at = text.find("[N]")) != std::string::npos;) text.replace(at, 3, "[" + size + "]");
  Result<Program> program = Program::Link(ExecutableOf(text));
  if (!program) FAIL(program.error().message());
  return *std::move(program);
}

Program Chain() { return LinkedOf(kChain); }

// The sum of x, and x times itself beside it.
constexpr char kOverlap[] = R"(
    .device gpu = cuda:0
    .kernel begin = "rewire.device.collective.begin_all_reduce" {channel = 41}
    .kernel wait = "rewire.device.collective.wait" {channel = 41}
    .kernel product = "rewire.device.matmul"
    .kernel add = "rewire.device.add"
    .func main(x: f32[2, 2]) -> f32[2, 2]
      %d = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=64, f32[2, 2], gpu
      %y = alloc_tensor %s, _, f32[2, 2]
      invoke_packed begin(%d, %y), outputs=1
      %t = alloc_storage _, alignment=64, f32[2, 2], gpu
      %z = alloc_tensor %t, _, f32[2, 2]
      invoke_packed product(%d, %d, %z), outputs=1
      invoke_packed wait(%y, %d, %y), outputs=1
      invoke_packed add(%y, %z, %z), outputs=1
      %h = device_copy %z, gpu, cpu
      ret %h
    .end
)";

// A sum that nobody waits for.
constexpr char kNeverWaits[] = R"(
    .device gpu = cuda:0
    .kernel begin = "rewire.device.collective.begin_all_reduce" {channel = 42}
    .func main(x: f32[4]) -> f32[4]
      %d = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=64, f32[4], gpu
      %y = alloc_tensor %s, _, f32[4]
      invoke_packed begin(%d, %y), outputs=1
      %h = device_copy %d, gpu, cpu
      ret %h
    .end
)";

// Runs `main`, and returns what the driver did meanwhile.
std::vector<LogEntry> LogOf(VirtualMachine* vm) {
  Simulation().SetLog(1);
  const std::uint64_t begin = Simulation().LogSize();
  const std::string message = MessageOf(vm->TryInvoke());
  Simulation().SetLog(0);
  REQUIRE(message.empty());
  std::vector<LogEntry> log;
  for (std::uint64_t at = begin; at < Simulation().LogSize(); ++at) {
    LogEntry entry{};
    REQUIRE(Simulation().GetLog(at, &entry) == 1);
    log.push_back(entry);
  }
  return log;
}

// Returns the streams of exchanges.
std::set<std::uint32_t> ExchangesIn(const std::vector<LogEntry>& log) {
  std::set<std::uint32_t> streams;
  for (const LogEntry& entry : log) {
    if (entry.kind == 'f') streams.insert(entry.stream);
  }
  return streams;
}

TEST_CASE("memory that a collective uses is used by nobody else meanwhile") {
  if (Ranks() == 1) return;
  VirtualMachine vm(Chain());
  vm.SetInput("x", Floats({1, 2, 3, 4}));
  const auto factor = static_cast<float>(Ranks() * Ranks());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Simulation().SetDelays(seed, 2'000'000);
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    const Tensor tensor = vm.result().tensor();
    const auto* values = static_cast<const float*>(tensor.view().data());
    for (int i = 0; i < 4 * Ranks(); ++i) CHECK(values[i] == factor * static_cast<float>(i % 4 + 1));
  }
  Simulation().SetDelays(0, 0);
  CHECK(Violations() == std::vector<std::string>());
}

TEST_CASE("collectives run on a stream of their own, and the host waits at the end alone") {
  if (Ranks() == 1) return;
  VirtualMachine vm(Chain());
  vm.SetInput("x", Floats({1, 2, 3, 4}));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  const WaitCounts before = vm.device_waits();
  const std::vector<LogEntry> log = LogOf(&vm);
  const std::set<std::uint32_t> exchanges = ExchangesIn(log);
  std::set<std::uint32_t> own;
  for (const LogEntry& entry : log) {
    if (exchanges.count(entry.stream) == 0) own.insert(entry.stream);
  }
  CHECK(exchanges.size() == 1);
  CHECK(own.size() == 1);
  // x first, and the result last.
  REQUIRE(log.size() >= 2);
  CHECK(own.count(log.front().stream) == 1);
  CHECK(own.count(log.back().stream) == 1);
  for (const LogEntry& entry : log) {
    if (exchanges.count(entry.stream) == 0) continue;
    CHECK(entry.start >= log.front().end);
    CHECK(entry.end <= log.back().start);
  }
  const WaitCounts after = vm.device_waits();
  CHECK(after.of(WaitCause::kEnd) - before.of(WaitCause::kEnd) == 1);
  CHECK(after.all() - before.all() == 1);
}

TEST_CASE("work that does not need a sum runs while the ranks exchange it, and what needs it comes after") {
  if (Ranks() == 1) return;
  VirtualMachine vm(LinkedOf(kOverlap));
  static constexpr float kX[] = {1, 2, 3, 4};
  vm.SetInput("x", TensorView(kX, {2, 2}));
  const auto ranks = static_cast<float>(Ranks());
  const float expected[] = {7 + ranks, 10 + 2 * ranks, 15 + 3 * ranks, 22 + 4 * ranks};
  int overlaps = 0;
  for (std::uint64_t run = 0; run < 20; ++run) {
    // Half of the runs are not delayed. Of these, too, the exchange may be over before a slow host has given
    // the product to its stream.
    Simulation().SetDelays(run, run % 2 == 0 ? 0 : 2'000'000);
    const std::vector<LogEntry> log = LogOf(&vm);
    const Tensor tensor = vm.result().tensor();
    for (int i = 0; i < 4; ++i) CHECK(static_cast<const float*>(tensor.view().data())[i] == expected[i]);
    const std::set<std::uint32_t> exchanges = ExchangesIn(log);
    REQUIRE(exchanges.size() == 1);
    std::uint64_t begins = 0, ends = 0;
    std::vector<LogEntry> kernels;
    for (const LogEntry& entry : log) {
      if (entry.kind == 'k') kernels.push_back(entry);
      if (exchanges.count(entry.stream) == 0) continue;
      begins = begins == 0 ? entry.start : std::min(begins, entry.start);
      ends = std::max(ends, entry.end);
    }
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[1].start >= ends);
    if (kernels[0].start < ends && kernels[0].end > begins) ++overlaps;
  }
  CHECK(overlaps > 0);
  Simulation().SetDelays(0, 0);
  CHECK(Violations() == std::vector<std::string>());
}

TEST_CASE("a run that never waits for a sum ends when the sum is there, and its memory is free only then") {
  if (Ranks() == 1) return;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Simulation().SetDelays(seed, 2'000'000);
    VirtualMachine vm(LinkedOf(kNeverWaits));
    vm.SetInput("x", Floats({1, 2, 3, 4}));
    for (int run = 0; run < 3; ++run) {
      const std::vector<LogEntry> log = LogOf(&vm);
      CHECK(ExchangesIn(log).size() == 1);
      CHECK(std::count_if(log.begin(), log.end(), [](const LogEntry& each) { return each.kind == 'h'; }) ==
            2);
    }
  }
  Simulation().SetDelays(0, 0);
  CHECK(Violations() == std::vector<std::string>());
}

}  // namespace
}  // namespace rewire::test
