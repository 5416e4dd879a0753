// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication: what dense, matmul, gemm and convolution come down to.
#pragma once

#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "vm/kernel/status.h"

namespace rewire::kernel::cpu {

// A matrix in memory: element (i, j) is data[i * row + j * column].
template <typename T>
struct Matrix {
  const T* data;
  std::int64_t row;
  std::int64_t column;

  const T& at(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};

// The right-hand matrix of Gemm, which is read in strips: fills to[k * width + j] for k < depth, j < width
// with element (k0 + k, j0 + j), and with 0 where j >= columns. Called from several threads.
template <typename T>
struct Source {
  void (*pack)(const void* context, std::int64_t k0, std::int64_t depth, std::int64_t j0,
               std::int64_t columns, std::int64_t width, T* to);
  const void* context;
};

// Packing memory for the products of one kernel call: taken at the first one, kept for the next.
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

// c[i * c_row + j] += sum over k of a(i, k) * b(k, j), for i < m, j < n, k < depth. c is written by rows; it
// is the caller's to fill before. Uses the calling VM's workspace and threads: for the kernel's own thread
// only. f32, f64; wrapping i32, i64.
template <typename T>
Status Gemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Source<T> b, T* c,
            std::int64_t c_row, GemmScratch<T>& scratch);
template <typename T>
Status Gemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Matrix<T> b, T* c,
            std::int64_t c_row, GemmScratch<T>& scratch);

}  // namespace rewire::kernel::cpu
