// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/bench/vm_threads.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/bench/vm_cases.h"
#include "rewire/tests/bench/vm_cpus.h"
#include "rewire/tests/bench/vm_loops.h"
#include "rewire/tests/bench/vm_one_kernel.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::bench {
namespace {

// The work of one thread or process: it makes what it needs, then repeats the operation as often as it is
// told.
using Repeat = std::function<void(std::uint64_t operations)>;
struct Work {
  std::string name;
  std::uint64_t
      operations;  // some tens of milliseconds: much longer than the threads differ in when they start
  std::function<Repeat(std::size_t thread)> prepare;
};

double ThreadNanoseconds() {
  timespec now{};
  Require(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0, "the thread's CPU clock cannot be read");
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Nanoseconds an operation, of the slowest thread. Every thread makes its own VM, as hosts do.
double RunOn(const Work& work, const std::vector<int>& cpus) {
  std::vector<double> times(cpus.size());
  std::barrier start(static_cast<std::ptrdiff_t>(cpus.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] {
      PinThread(cpus[i]);
      const Repeat repeat = work.prepare(i);
      repeat(work.operations / 100);
      start.arrive_and_wait();
      const double before = ThreadNanoseconds();
      repeat(work.operations);
      times[i] = ThreadNanoseconds() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(times.begin(), times.end()) / static_cast<double>(work.operations);
}

// The messages of two processes to each other.
struct Meeting {
  std::atomic<int> arrived{0};
  double times[2] = {0, 0};
};

// The same on two processes, forked from this one and pinned likewise.
double RunOnProcesses(const Work& work, const std::vector<int>& cpus) {
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
    const Repeat repeat = work.prepare(static_cast<std::size_t>(i));
    repeat(work.operations / 100);
    ++meeting->arrived;
    while (meeting->arrived < count) {
    }
    const double before = ThreadNanoseconds();
    repeat(work.operations);
    meeting->times[i] = ThreadNanoseconds() - before;
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    Require(::waitpid(child, &status, 0) == child && status == 0, "a forked process failed");
  }
  const double slowest = *std::max_element(meeting->times, meeting->times + count);
  ::munmap(shared, sizeof(Meeting));
  return slowest / static_cast<double>(work.operations);
}

Work TypicalOps() {
  constexpr std::uint64_t kSteps = 10'000'000;
  const auto program = std::make_shared<LoopProgram>(std::vector<Loop>{TypicalOp()});
  const double steps_each = static_cast<double>(kSteps) / program->Operations(0, kSteps);
  return {"typical op", static_cast<std::uint64_t>(program->Operations(0, kSteps)),
          [program, steps_each](std::size_t /*thread*/) -> Repeat {
            const auto vm = std::make_shared<VirtualMachine>(program->MakeVm());
            return [vm, steps_each](std::uint64_t operations) {
              LoopProgram::Run(*vm, 0,
                               static_cast<std::uint64_t>(static_cast<double>(operations) * steps_each));
            };
          }};
}

Work WholeRuns(const Program& program) {
  return {"run, input and output bound", 200'000, [program](std::size_t /*thread*/) -> Repeat {
            const auto vectors = std::make_shared<Vectors>();
            const auto vm = std::make_shared<VirtualMachine>(program);
            Require(vm->TrySetInput("x", TensorView(vectors->x, {4})));
            Require(vm->TrySetOutput("y", TensorView(vectors->y, {4})));
            return [vectors, vm](std::uint64_t operations) {
              for (std::uint64_t i = 0; i < operations; ++i) Require(vm->TryInvoke(std::uint32_t{0}));
            };
          }};
}

Work PooledRuns(const Program& program) {
  return {"Program::TryRun", 100'000, [program](std::size_t /*thread*/) -> Repeat {
            const Vectors vectors;
            const Value x(Take(Tensor::CopyOf(TensorView(vectors.x, {4}))));
            return [program, x](std::uint64_t operations) {
              for (std::uint64_t i = 0; i < operations; ++i) {
                Require(program.TryRun("main", Span<const Value>(&x, 1)).has_value(), "a run failed");
              }
            };
          }};
}

ThreadScaling Measure(const Work& work, int pairs, int first_cpu, int second_cpu) {
  std::vector<double> one;
  std::vector<double> two;
  std::vector<double> processes;
  std::vector<double> ratio;
  std::vector<double> throughput;
  std::vector<double> process_throughput;
  for (int i = 0; i < pairs; ++i) {
    // The first of the two alternates, so that a machine that speeds up or slows down favors neither.
    if (i % 2 == 0) one.push_back(RunOn(work, {first_cpu}));
    two.push_back(RunOn(work, {first_cpu, second_cpu}));
    if (i % 2 != 0) one.push_back(RunOn(work, {first_cpu}));
    processes.push_back(RunOnProcesses(work, {first_cpu, second_cpu}));
    ratio.push_back(two.back() / one.back());
    throughput.push_back(2 * one.back() / two.back());
    process_throughput.push_back(2 * one.back() / processes.back());
  }
  return {work.name,
          Summarize(std::move(one)),
          Summarize(std::move(two)),
          Summarize(std::move(processes)),
          Summarize(std::move(ratio)),
          Summarize(std::move(throughput)),
          Summarize(std::move(process_throughput))};
}

}  // namespace

std::vector<ThreadScaling> MeasureThreads(int pairs, int first_cpu, int second_cpu) {
  const Program program = OneKernel();
  std::vector<ThreadScaling> all;
  for (const Work& work : {TypicalOps(), WholeRuns(program), PooledRuns(program)}) {
    all.push_back(Measure(work, pairs, first_cpu, second_cpu));
  }
  return all;
}

}  // namespace rewire::bench
