// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/gemm.h"

#include <algorithm>
#include <type_traits>

#include "rewire/kernels/cpu/product/gemm_micro_kernel.h"
#include "rewire/kernels/cpu/support/gemm_workspace.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

// The type that products are added up in: integers wrap.
template <typename T, bool kIntegral = std::is_integral_v<T>>
struct SumOf {
  using Type = T;
};
template <typename T>
struct SumOf<T, true> {
  using Type = Wrapping<T>;
};

// A block of the right matrix, kDepth x kColumns, stays in the second cache while all rows of the left one
// pass.
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kColumns = 1024;

template <typename T>
void PackMatrix(const void* context, std::int64_t k0, std::int64_t depth, std::int64_t j0,
                std::int64_t columns, std::int64_t width, T* to) {
  const auto& b = *static_cast<const Matrix<T>*>(context);
  for (std::int64_t k = 0; k < depth; ++k, to += width) {
    const T* from = &b.at(k0 + k, j0);
    for (std::int64_t j = 0; j < columns; ++j) to[j] = from[j * b.column];
    std::fill(to + columns, to + width, T{0});
  }
}

// kMicroRows rows from i0 on, side by side for each k; rows past `rows` are 0.
template <typename T>
void PackRows(const Matrix<T>& a, std::int64_t i0, std::int64_t rows, std::int64_t k0, std::int64_t depth,
              T* to) {
  for (std::int64_t i = 0; i < kMicroRows; ++i) {
    if (i < rows) {
      for (std::int64_t k = 0; k < depth; ++k) to[k * kMicroRows + i] = a.at(i0 + i, k0 + k);
    } else {
      for (std::int64_t k = 0; k < depth; ++k) to[k * kMicroRows + i] = 0;
    }
  }
}

// Whether std::int32_t holds all elements of a matrix of 64-bit integers, as it does most.
bool IsNarrow(const Matrix<std::uint64_t>& x, std::int64_t rows, std::int64_t columns) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 31;
  if (x.column == 1 && x.row == columns) {  // one row, since a call for each would take longer
    columns = Times(rows, columns);
    rows = 1;
  }
  std::uint64_t high = 0;
  Pace pace;
  for (std::int64_t i = 0; i < rows && high >> 32 == 0; ++i) {
    const bool done = pace.For(columns, 1, [&](std::int64_t begin, std::int64_t end) {
      WideLoop([row = &x.at(i, 0), step = x.column, begin, end, &high] {
        std::uint64_t any = 0;
        for (std::int64_t j = begin; j < end; ++j) any |= row[j * step] + kHalf;
        high |= any;
      });
    });
    if (!done) return false;
  }
  return high >> 32 == 0;
}

// Integers are multiplied without a sign, in the memory of those with one.
template <typename T, typename Given>
Status PackedGemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Source<T> b, T* c,
                  std::int64_t c_row, GemmScratch<Given>& scratch, bool is_narrow = false) {
  const MicroKernel<T>& micro = BestMicroKernel<T>();
  const auto run_tile = is_narrow ? micro.run_narrow : micro.run;
  const std::int64_t width = micro.width;
  Given* memory = nullptr;
  // The declared memory, whatever the width: how much a run takes is known before it.
  if (Status s = scratch.Reserve(MostPacked(n, depth), &memory); !s.ok()) return s;
  auto* const packed = reinterpret_cast<T*>(memory);

  for (std::int64_t j0 = 0; j0 < n; j0 += kColumns) {
    const std::int64_t columns = std::min(kColumns, n - j0);
    const std::int64_t strips = (columns + width - 1) / width;
    for (std::int64_t k0 = 0; k0 < depth; k0 += kDepth) {
      const std::int64_t ks = std::min(kDepth, depth - k0);
      Status pack =
          ParallelFor(strips, GrainOf(kGrain, ks, width), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t s = begin; s < end; ++s) {
              b.pack(b.context, k0, ks, j0 + s * width, std::min(width, columns - s * width), width,
                     packed + s * ks * width);
            }
          });
      if (!pack.ok()) return pack;
      // A task is a strip of rows by a group of strips of columns: few rows are shared out by columns.
      const std::int64_t row_strips = (m + kMicroRows - 1) / kMicroRows;
      const std::int64_t groups = row_strips >= 16 ? 1 : std::min<std::int64_t>(strips, 16);
      const std::int64_t group_size = (strips + groups - 1) / groups;
      const std::int64_t task_work = kMicroRows * group_size * width * ks;
      // Rows that lie side by side one way or the other are read so seldom that packing them costs more.
      constexpr std::int64_t kFewStrips = 2;
      const bool as_they_lie = group_size <= kFewStrips && (a.column == 1 || a.row == 1);
      Status run = ParallelFor(
          row_strips * groups, GrainOf(8 * kGrain, task_work), [&](std::int64_t begin, std::int64_t end) {
            T rows_packed[kDepth * kMicroRows];
            T tile[kMicroRows * kMaxMicroWidth];
            for (std::int64_t task = begin; task < end; ++task) {
              const std::int64_t i0 = task / groups * kMicroRows;
              const std::int64_t rows = std::min<std::int64_t>(kMicroRows, m - i0);
              const std::int64_t first = task % groups * group_size;
              const std::int64_t last = std::min(strips, first + group_size);
              const T* from[kMicroRows];
              if (!as_they_lie) PackRows(a, i0, rows, k0, ks, rows_packed);
              for (std::int64_t i = 0; i < kMicroRows; ++i) {
                from[i] = as_they_lie ? &a.at(i0 + std::min(i, rows - 1), k0) : rows_packed + i;
              }
              const std::int64_t step = as_they_lie ? a.column : kMicroRows;
              for (std::int64_t s = first; s < last; ++s) {
                run_tile(ks, from, step, packed + s * ks * width, tile);
                T* to = c + i0 * c_row + j0 + s * width;
                const std::int64_t used = std::min(width, columns - s * width);
                for (std::int64_t i = 0; i < rows; ++i) {
                  for (std::int64_t j = 0; j < used; ++j) to[i * c_row + j] += tile[i * width + j];
                }
              }
            }
          });
      if (!run.ok()) return run;
    }
  }
  return Status();
}

// to[j] += the sum over k in [k0, k1) of a(i, k) * b(k, j), for j in [first, last), in the order of k. Four
// rows of b at a time, so that each element of `to` is read and written a quarter as often.
template <typename T>
void AddRows(const Matrix<T>& a, const Matrix<T>& b, std::int64_t i, std::int64_t k0, std::int64_t k1,
             std::int64_t first, std::int64_t last, T* all) {
  using Sum = typename SumOf<T>::Type;
  WideLoop([=] {
    T* HWY_RESTRICT to = all;
    const auto factor = [&](std::int64_t k) { return static_cast<Sum>(a.at(i, k)); };
    const auto product = [](Sum by, T of) { return by * static_cast<Sum>(of); };
    std::int64_t k = k0;
    if (b.column == 1) {
      for (; k + 4 <= k1; k += 4) {
        const Sum f0 = factor(k), f1 = factor(k + 1), f2 = factor(k + 2), f3 = factor(k + 3);
        const T *b0 = &b.at(k, 0), *b1 = b0 + b.row, *b2 = b1 + b.row, *b3 = b2 + b.row;
        for (std::int64_t j = first; j < last; ++j) {
          Sum sum = static_cast<Sum>(to[j]) + product(f0, b0[j]);
          sum = sum + product(f1, b1[j]);
          sum = sum + product(f2, b2[j]);
          to[j] = static_cast<T>(sum + product(f3, b3[j]));
        }
      }
    }
    for (; k < k1; ++k) {
      const Sum f = factor(k);
      const T* row = &b.at(k, 0);
      for (std::int64_t j = first; j < last; ++j) {
        to[j] = static_cast<T>(static_cast<Sum>(to[j]) + product(f, row[j * b.column]));
      }
    }
  });
}

// Few rows: each element of b is used so seldom that packing it costs more than it saves.
template <typename T>
Status SmallGemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Matrix<T> b, T* c,
                 std::int64_t c_row) {
  using Sum = typename SumOf<T>::Type;
  constexpr std::int64_t kFew = 8;
  if (n <= kFew && depth <= kFew) {
    // A call for each row would take longer than its products.
    return ParallelFor(m, GrainOf(kGrain, n, depth), [=](std::int64_t begin, std::int64_t end) {
      WideLoop([=] {
        for (std::int64_t i = begin; i < end; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            auto sum = static_cast<Sum>(c[i * c_row + j]);
            for (std::int64_t k = 0; k < depth; ++k)
              sum += static_cast<Sum>(a.at(i, k)) * static_cast<Sum>(b.at(k, j));
            c[i * c_row + j] = static_cast<T>(sum);
          }
        }
      });
    });
  }
  const std::int64_t grain = GrainOf(4 * kGrain, m, depth);
  if (b.row == 1 && b.column != 1) {
    // b's columns lie in one piece: dot products, in eight lanes.
    return ParallelFor(n, grain, [&](std::int64_t begin, std::int64_t end, Pace& pace) {
      for (std::int64_t j = begin; j < end; ++j) {
        const T* column = &b.at(0, j);
        for (std::int64_t i = 0; i < m; ++i) {
          constexpr std::int64_t kLanes = 8;
          Sum lanes[kLanes] = {};
          for (std::int64_t k = 0; k < depth;) {
            const std::int64_t last = k + std::min(kPace, depth - k);
            if (!pace.Spend(last - k)) return;
            if (a.column == 1) {
              const T* row = &a.at(i, 0);
              for (; k + kLanes <= last; k += kLanes) {
                for (std::int64_t l = 0; l < kLanes; ++l) {
                  lanes[l] += static_cast<Sum>(row[k + l]) * static_cast<Sum>(column[k + l]);
                }
              }
            }
            for (; k < last; ++k) lanes[0] += static_cast<Sum>(a.at(i, k)) * static_cast<Sum>(column[k]);
          }
          Sum sum = 0;
          for (Sum lane : lanes) sum += lane;
          T& to = c[i * c_row + j];
          to = static_cast<T>(static_cast<Sum>(to) + sum);
        }
      }
    });
  }
  return ParallelFor(n, std::max<std::int64_t>(grain, 64),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       // In pieces of columns, so that no loop runs long between two questions.
                       for (std::int64_t first = begin; first < end; first += kPace) {
                         const std::int64_t last = std::min(end, first + kPace);
                         const std::int64_t asks_every =
                             std::max<std::int64_t>(1, kPace / (last - first));  // so many rows of b
                         for (std::int64_t i = 0; i < m; ++i) {
                           T* to = c + i * c_row;
                           for (std::int64_t k = 0; k < depth;) {
                             const std::int64_t rows_end = k + std::min(asks_every, depth - k);
                             if (!pace.Spend((rows_end - k) * (last - first))) return;
                             AddRows(a, b, i, k, rows_end, first, last, to);
                             k = rows_end;
                           }
                         }
                       }
                     });
}

}  // namespace

std::int64_t MostPacked(std::int64_t columns, std::int64_t depth) {
  // A micro kernel of any width rounds up to less than its width more.
  return std::min(depth, kDepth) * (std::min(columns, kColumns) + kMaxMicroWidth - 1);
}

template <typename T>
Status Gemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Source<T> b, T* c,
            std::int64_t c_row, GemmScratch<T>& scratch) {
  if (m == 0 || n == 0 || depth == 0) return Status();
  return PackedGemm(m, n, depth, a, b, c, c_row, scratch);
}

template <typename T>
Status Gemm(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a, Matrix<T> b, T* c,
            std::int64_t c_row, GemmScratch<T>& scratch) {
  if (m == 0 || n == 0 || depth == 0) return Status();
  if (PacksMatrix(m, n, depth)) {
    using U = typename SumOf<T>::Type;
    const Matrix<U> left{reinterpret_cast<const U*>(a.data), a.row, a.column};
    const Matrix<U> right{reinterpret_cast<const U*>(b.data), b.row, b.column};
    bool is_narrow = false;
    if constexpr (std::is_same_v<U, std::uint64_t>) {
      is_narrow =
          BestMicroKernel<U>().run_narrow != nullptr && IsNarrow(left, m, depth) && IsNarrow(right, depth, n);
    }
    return PackedGemm(m, n, depth, left, Source<U>{&PackMatrix<U>, &right}, reinterpret_cast<U*>(c), c_row,
                      scratch, is_narrow);
  }
  return SmallGemm(m, n, depth, a, b, c, c_row);
}

template Status Gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<float>, Source<float>, float*,
                     std::int64_t, GemmScratch<float>&);
template Status Gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<double>, Source<double>, double*,
                     std::int64_t, GemmScratch<double>&);
template Status Gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<float>, Matrix<float>, float*,
                     std::int64_t, GemmScratch<float>&);
template Status Gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<double>, Matrix<double>, double*,
                     std::int64_t, GemmScratch<double>&);
template Status Gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<std::int32_t>, Matrix<std::int32_t>,
                     std::int32_t*, std::int64_t, GemmScratch<std::int32_t>&);
template Status Gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<std::int64_t>, Matrix<std::int64_t>,
                     std::int64_t*, std::int64_t, GemmScratch<std::int64_t>&);

}  // namespace rewire::kernel::cpu
