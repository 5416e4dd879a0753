// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/vm_threads.h"

#include <algorithm>
#include <barrier>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/bench/vm_cpus.h"
#include "tests/bench/vm_loops.h"

namespace rewire::bench {
namespace {

// Some tens of milliseconds: much longer than the threads differ in when they start.
constexpr std::uint64_t kSteps = 10'000'000;

double ThreadNanoseconds() {
  timespec now{};
  Require(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0, "the thread's CPU clock cannot be read");
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Each thread's nanoseconds for kSteps, the slowest one's returned. Every thread makes its own VM, as hosts
// do.
double RunOn(LoopProgram& program, const std::vector<int>& cpus) {
  std::vector<double> times(cpus.size());
  std::barrier start(static_cast<std::ptrdiff_t>(cpus.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] {
      PinThread(cpus[i]);
      VirtualMachine vm = program.MakeVm();
      LoopProgram::Run(vm, 0, kSteps / 100);
      start.arrive_and_wait();
      const double before = ThreadNanoseconds();
      LoopProgram::Run(vm, 0, kSteps);
      times[i] = ThreadNanoseconds() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(times.begin(), times.end());
}

}  // namespace

ThreadScaling MeasureThreads(int pairs, int first_cpu, int second_cpu) {
  LoopProgram program({TypicalOp()});
  const double operations = program.Operations(0, kSteps);
  std::vector<double> one;
  std::vector<double> two;
  std::vector<double> ratio;
  for (int i = 0; i < pairs; ++i) {
    // Which comes first alternates, so that a machine that speeds up or slows down favours neither.
    if (i % 2 == 0) one.push_back(RunOn(program, {first_cpu}) / operations);
    two.push_back(RunOn(program, {first_cpu, second_cpu}) / operations);
    if (i % 2 != 0) one.push_back(RunOn(program, {first_cpu}) / operations);
    ratio.push_back(two.back() / one.back());
  }
  return {Summarize(std::move(one)), Summarize(std::move(two)), Summarize(std::move(ratio))};
}

}  // namespace rewire::bench
