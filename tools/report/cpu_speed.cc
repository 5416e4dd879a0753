// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/cpu_speed.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/tools/io/cli.h"
#include "rewire/vm/thread_pool.h"
#include "rewire/vm/vm.h"

namespace rewire::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRows = 768;  // of each matrix, and columns
std::string ProductProgram() {
  return ".kernel product = \"" + std::string(names::kPackedMatMul) + "\" {columns=768}" + R"(
.func main(x: f32[768, 768], w: f32[768, 768]) -> y: f32[768, 768]
  %s = alloc_storage _, alignment=64, f32[768, 768], cpu
  %y = alloc_tensor %s, _, f32[768, 768]
  invoke_packed product(%x, %w, %y), outputs=1
  ret %y
.end
)";
}

// The least time of several calls, in seconds; of one call where that takes long.
template <typename Work>
double Fastest(const Work& work) {
  auto least = Clock::duration::max();
  const Clock::time_point last = Clock::now() + std::chrono::milliseconds(100);
  for (int i = 0; i < 6 && (i == 0 || Clock::now() < last); ++i) {
    const Clock::time_point start = Clock::now();
    work();
    least = std::min(least, Clock::now() - start);
  }
  return std::chrono::duration<double>(least).count();
}

std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// Bytes that are read and written in a second.
double CopySpeed(std::uint32_t threads) {
  constexpr std::size_t kBytes = std::size_t{48} << 20;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes);
  const std::size_t part = kBytes / threads;
  const double seconds = Fastest([&] {
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < threads; ++i)
      workers.emplace_back([&, i] { std::memcpy(to.data() + i * part, from.data() + i * part, part); });
    for (std::thread& worker : workers) worker.join();
  });
  return 2 * static_cast<double>(part * threads) / seconds;
}

Result<double> ProductSpeed(std::uint32_t threads) {
  Result<Module> module = Assemble(ProductProgram());
  if (!module) return Forward(module);
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return Forward(executable);
  LinkOptions link;
  link.threads = ThreadPool::Make(static_cast<std::int32_t>(threads));
  Result<Program> program = Program::Link(*executable, std::move(link));
  if (!program) return Forward(program);
  VirtualMachine vm(*program);
  const std::int64_t shape[] = {static_cast<std::int64_t>(kRows), static_cast<std::int64_t>(kRows)};
  Result<Tensor> matrix = Tensor::Make({kDLFloat, 32, 1}, {shape, 2});
  if (!matrix) return Forward(matrix);
  std::memset(matrix->view().data(), 0, matrix->view().bytes());
  Status invoked;
  for (std::uint32_t i = 0; i < 2 && invoked; ++i)
    invoked = vm.TrySetInput(InputHandle{0, i}, matrix->view());
  if (invoked) invoked = vm.TryInvoke(0);
  const double seconds = Fastest([&] {
    if (invoked) invoked = vm.TryInvoke(0);
  });
  if (!invoked) return Forward(invoked);
  return 2 * kRows * kRows * kRows / seconds;
}

}  // namespace

CpuSpeed MeasureCpu(std::int32_t threads) {
  CpuSpeed speed;
  speed.name = CpuName();
  speed.threads =
      threads > 0 ? static_cast<std::uint32_t>(threads) : std::max(1U, std::thread::hardware_concurrency());
  const Result<double> product = ProductSpeed(speed.threads);
  if (product) {
    speed.operations = *product;
  } else {
    Detail("the speed of this CPU is not measured: " + product.error().message());
  }
  speed.bytes = CopySpeed(speed.threads);
  return speed;
}

}  // namespace rewire::tools
