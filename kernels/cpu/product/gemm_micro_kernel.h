// SPDX-License-Identifier: Apache-2.0
// The innermost loop of Gemm, for the CPU that the process runs on.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Rows of the left matrix that one call takes; the columns of the right one are MicroKernel::width.
inline constexpr int kMicroRows = 6;
// The widest of all targets.
inline constexpr int kMaxMicroWidth = 32;

// tile[i * width + j] = sum over k < depth of rows[i][k * step] * b[k * width + j], for i < kMicroRows.
template <typename T>
struct MicroKernel {
  int width;
  void (*run)(std::int64_t depth, const T* const* rows, std::int64_t step, const T* b, T* tile);
  // The same for numbers that std::int32_t holds, whose products are one instruction. For std::uint64_t
  // alone.
  decltype(run) run_narrow = nullptr;
};

// The kernel of the best instruction set that this CPU and the build support. For float, double, and
// std::uint32_t and std::uint64_t, which wrap.
template <typename T>
MicroKernel<T> ChooseMicroKernel();

// The same, chosen once per process.
template <typename T>
const MicroKernel<T>& BestMicroKernel() {
  static const MicroKernel<T> kBest = ChooseMicroKernel<T>();
  return kBest;
}

}  // namespace rewire::kernel::cpu
