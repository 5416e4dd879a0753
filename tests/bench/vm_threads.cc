// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/vm_threads.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <ctime>
#include <new>
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

// What two processes tell each other.
struct Meeting {
  std::atomic<int> arrived{0};
  double times[2] = {0, 0};
};

// The same on two processes, forked from this one and pinned likewise.
double RunOnProcesses(LoopProgram& program, const std::vector<int>& cpus) {
  void* shared = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Require(shared != MAP_FAILED, "no memory that processes share");
  auto* meeting = new (shared) Meeting;
  const auto count = static_cast<int>(cpus.size());
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    Require(child >= 0, "no process can be forked");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    PinThread(cpus[static_cast<std::size_t>(i)]);
    VirtualMachine vm = program.MakeVm();
    LoopProgram::Run(vm, 0, kSteps / 100);
    ++meeting->arrived;
    while (meeting->arrived < count) {
    }
    const double before = ThreadNanoseconds();
    LoopProgram::Run(vm, 0, kSteps);
    meeting->times[i] = ThreadNanoseconds() - before;
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    Require(::waitpid(child, &status, 0) == child && status == 0, "a forked process failed");
  }
  const double slowest = *std::max_element(meeting->times, meeting->times + count);
  ::munmap(shared, sizeof(Meeting));
  return slowest;
}

}  // namespace

ThreadScaling MeasureThreads(int pairs, int first_cpu, int second_cpu) {
  LoopProgram program({TypicalOp()});
  const double operations = program.Operations(0, kSteps);
  std::vector<double> one;
  std::vector<double> two;
  std::vector<double> processes;
  std::vector<double> ratio;
  std::vector<double> throughput;
  std::vector<double> process_throughput;
  for (int i = 0; i < pairs; ++i) {
    // Which comes first alternates, so that a machine that speeds up or slows down favours neither.
    if (i % 2 == 0) one.push_back(RunOn(program, {first_cpu}) / operations);
    two.push_back(RunOn(program, {first_cpu, second_cpu}) / operations);
    if (i % 2 != 0) one.push_back(RunOn(program, {first_cpu}) / operations);
    processes.push_back(RunOnProcesses(program, {first_cpu, second_cpu}) / operations);
    ratio.push_back(two.back() / one.back());
    throughput.push_back(2 * one.back() / two.back());
    process_throughput.push_back(2 * one.back() / processes.back());
  }
  return {Summarize(std::move(one)),        Summarize(std::move(two)),
          Summarize(std::move(processes)),  Summarize(std::move(ratio)),
          Summarize(std::move(throughput)), Summarize(std::move(process_throughput))};
}

}  // namespace rewire::bench
