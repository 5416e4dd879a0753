// SPDX-License-Identifier: Apache-2.0
// The order of a collective's work with the run's, as the simulated CUDA driver has seen it.
#include <dlfcn.h>

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

Program Chain() {
  std::string text = kChain;
  const std::string size = std::to_string(4 * Ranks());
  for (std::size_t at; (at = text.find("[N]")) != std::string::npos;) text.replace(at, 3, "[" + size + "]");
  Result<Program> program = Program::Link(ExecutableOf(text));
  if (!program) FAIL(program.error().message());
  return *std::move(program);
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
  Simulation().SetLog(1);
  const std::uint64_t begin = Simulation().LogSize();
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  Simulation().SetLog(0);
  std::set<std::uint32_t> own, exchanges;
  std::vector<LogEntry> log;
  for (std::uint64_t at = begin; at < Simulation().LogSize(); ++at) {
    LogEntry entry{};
    REQUIRE(Simulation().GetLog(at, &entry) == 1);
    log.push_back(entry);
    if (entry.kind == 'f') exchanges.insert(entry.stream);
  }
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

}  // namespace
}  // namespace rewire::test
