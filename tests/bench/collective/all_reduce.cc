// SPDX-License-Identifier: Apache-2.0
// bench-collective: what an all-reduce of a program costs beside MPI's own MPI_Allreduce, in one job. Run it
// by mpirun (`make bench-collective`). Options: --rounds N, --seconds S for each size and way, --calls N of a
// program's run (16).
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/bench/statistics.h"
#include "rewire/vm/vm.h"

namespace {

using Clock = std::chrono::steady_clock;

// Makes a program of `in_program` calls for so many elements.
rewire::Program ProgramFor(std::int64_t count, int in_program) {
  std::string calls;
  for (int i = 0; i < in_program; ++i) calls += "  invoke_packed k(%x, %y), outputs=1\n";
  const std::string type = "f32[" + std::to_string(count) + "]";
  const rewire::Result<rewire::Module> module =
      rewire::Assemble(".kernel k = \"rewire.collective.all_reduce\"\n.func main(x: " + type +
                       ") -> y: " + type + "\n  %s = alloc_storage _, alignment=64, " + type +
                       ", cpu\n  %y = alloc_tensor %s, _, " + type + "\n" + calls + "  ret %y\n.end\n");
  return rewire::Program::Link(rewire::Executable::FromModule(rewire::Module(*module)).value()).value();
}

// Microseconds of an all-reduce on the slowest rank, over `calls` of `in_program` each that all ranks begin
// together.
template <typename Call>
double Time(int calls, int in_program, const Call& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  double own = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls / in_program;
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

}  // namespace

int main(int count, char** arguments) {
  int rounds = 15, in_program = 16, level = 0, rank = 0, ranks = 0;
  double seconds = 0.02;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    if (name == "--rounds") rounds = std::atoi(arguments[i + 1]);
    if (name == "--calls") in_program = std::max(1, std::atoi(arguments[i + 1]));
    if (name == "--seconds") seconds = std::atof(arguments[i + 1]);
  }
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0) {
    std::printf("%d ranks, medians of %d rounds, us an all-reduce of the slowest rank\n", ranks, rounds);
    std::printf("%10s %14s %12s %8s %22s\n", "bytes", "MPI_Allreduce", "program", "ratio",
                "ratios of the rounds");
  }
  for (std::int64_t bytes = 1024; bytes <= 4 << 20; bytes *= 4) {
    const std::int64_t elements = bytes / 4;
    const auto size = static_cast<std::size_t>(elements);
    std::vector<float> x(size, 1.0f), y(size), z(size);
    rewire::VirtualMachine vm(ProgramFor(elements, in_program));
    vm.SetInput("x", rewire::TensorView(x.data(), {elements}));
    vm.SetOutput("y", rewire::TensorView(y.data(), {elements}));
    const auto program = [&] { vm.Invoke("main"); };
    const auto mpi = [&] {
      for (int i = 0; i < in_program; ++i)
        MPI_Allreduce(x.data(), z.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    program();
    mpi();
    if (y != z) return std::fprintf(stderr, "the sums differ\n"), MPI_Abort(MPI_COMM_WORLD, 1);
    int calls =
        std::max(1, static_cast<int>(seconds * 1e6 / in_program / std::max(0.1, Time(2, in_program, mpi))));
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::vector<double> ours, theirs, ratios;
    for (int round = 0; round < rounds; ++round) {
      // Each goes first in half of the rounds.
      const double first = round % 2 == 0 ? Time(calls, in_program, mpi) : Time(calls, in_program, program);
      const double second = round % 2 == 0 ? Time(calls, in_program, program) : Time(calls, in_program, mpi);
      theirs.push_back(round % 2 == 0 ? first : second);
      ours.push_back(round % 2 == 0 ? second : first);
      ratios.push_back(ours.back() / theirs.back());
    }
    std::sort(ratios.begin(), ratios.end());
    if (rank == 0) {
      std::printf("%10lld %14.1f %12.1f %8.2f %13.2f to %.2f\n", static_cast<long long>(bytes),
                  rewire::bench::Summarize(theirs).median, rewire::bench::Summarize(ours).median,
                  rewire::bench::Summarize(ratios).median, ratios.front(), ratios.back());
    }
  }
  MPI_Finalize();
  return 0;
}
