// SPDX-License-Identifier: Apache-2.0
//
// Matrix multiplication. dense, matmul, gemm and convolution all use it.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// A matrix in memory: element (i, j) is data[i * row + j * column].
template <typename T>
struct Matrix {
  const T* data;
  std::int64_t row;
  std::int64_t column;

  const T& at(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};

// The right-hand matrix of Gemm, which is read in strips. The function sets to[k * width + j] to element (k0
// + k, j0 + j), for k < depth and j < width, and to 0 where j >= columns. Called from several threads.
template <typename T>
struct Source {
  void (*pack)(const void* context, std::int64_t k0, std::int64_t depth, std::int64_t j0,
               std::int64_t columns, std::int64_t width, T* to);
  const void* context;
};

// Memory for packing during one kernel call. It is allocated by the first product and kept for the next.
template <typename T>
class GemmScratch {
 public:
  Status Reserve(std::int64_t count, T** memory) {
    if (count > capacity_) {
      if (Status s = Workspace(count, &memory_); !s.ok()) return s;
      capacity_ = count;
    }
    *memory = memory_;
    return Status();
  }

 private:
  T* memory_ = nullptr;
  std::int64_t capacity_ = 0;
};

// c[i * c_row + j] += sum over k of a(i, k) * b(k, j), for i < m, j < n, k < depth. The caller must have
// initialized c. Uses the calling VM's workspace and threads, so call it only from the kernel's own thread.
// Types: f32, f64, and wrapping i32 and i64.
template <typename T>
Status Gemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Source<T> b, T* c,
            std::int64_t c_row, GemmScratch<T>& scratch);
template <typename T>
Status Gemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Matrix<T> b, T* c,
            std::int64_t c_row, GemmScratch<T>& scratch);

}  // namespace rewire::kernel::cpu
