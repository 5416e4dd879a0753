// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one axis, shifted by the maximum so that nothing overflows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>

#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/movement/transposed_block.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

template <bool kLog>
struct Softmax : WithAttributes<contract::SoftmaxAttributes> {
  static constexpr const char* kName = kLog ? names::kLogSoftmax : names::kSoftmax;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).SameDType("out", out, "x", x);
    if (out.raw_data() != x.raw_data()) checks.NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    const std::int64_t outer = Product(x.dims(), 0, along);
    const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
    const std::int64_t count = x.dim(along);
    if (x.size() == 0) return Status();
    if (x.Is<float>() && inner == 1 && count <= kShortLine) {
      return ParallelFor(outer, GrainOf(kGrain, count, 4),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           const std::int64_t at = begin * count;
                           ShortLines(x.data<float>() + at, out.data<float>() + at, end - begin, count, pace);
                         });
    }
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* in = x.data<T>();
      T* to = out.data<T>();
      // Columns side by side share a pass; a block of them fits on the stack.
      const std::int64_t blocks = (inner + kBlock - 1) / kBlock;
      const std::int64_t work = Times(count, std::min(inner, kBlock), 4);
      return ParallelFor(
          Times(outer, blocks), GrainOf(kGrain, work), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
            for (std::int64_t i = begin; i < end && !pace.stopped(); ++i) {
              const std::int64_t first = i % blocks * kBlock;
              const std::int64_t offset = i / blocks * count * inner + first;
              if (inner == 1)
                Line(in + offset, to + offset, count, pace);
              else
                Columns(in + offset, to + offset, count, inner, std::min(kBlock, inner - first), pace);
            }
          });
    });
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  static constexpr std::int64_t kShortLine = 32;

  // Lines that are too short for vectors of their own become columns, whose vectors go over lines. A line
  // alone is computed as a column, too, so that its bits do not depend on how many lines there are.
  static void ShortLines(const float* in, float* out, std::int64_t lines, std::int64_t count, Pace& pace) {
    constexpr std::int64_t kFewLines = 4;  // that are not worth it
    const auto transpose = std::get<TransposeBlock<std::uint32_t>>(BestBlockTransposes());
    alignas(64) float columns[kShortLine * kBlock];
    const auto turn = [&](float* to, std::int64_t to_row, const float* from, std::int64_t from_column,
                          std::int64_t rows, std::int64_t width) {
      transpose(reinterpret_cast<std::uint32_t*>(to), to_row, reinterpret_cast<const std::uint32_t*>(from),
                from_column, rows, width, false);
    };
    for (std::int64_t first = 0; first < lines && !pace.stopped(); first += kBlock) {
      const std::int64_t some = std::min(kBlock, lines - first), at = first * count;
      if (some < kFewLines) {
        for (std::int64_t i = at; i < lines * count; i += count) Columns(in + i, out + i, count, 1, 1, pace);
        return;
      }
      turn(columns, some, in + at, count, count, some);
      Columns(columns, columns, count, some, some, pace);
      turn(out + at, count, columns, some, some, count);
    }
  }

  template <typename T>
  static T Larger(T a, T b) {
    return a > b || a != a ? a : b;
  }

  // All passes over a long line go through it in the same pieces.
  template <typename T>
  static void Line(const T* in, T* out, std::int64_t count, Pace& pace) {
    if constexpr (std::is_same_v<T, float>) {
      const VectorMath& math = BestVectorMath();
      float largest = -std::numeric_limits<float>::infinity();
      float sum = 0;
      const auto for_pieces = [&](const auto& body) { return pace.For(count, 1, body); };
      bool goes = for_pieces([&](std::int64_t i, std::int64_t end) {
        largest = Larger(math.largest(in + i, end - i), largest);
      });
      goes = goes && for_pieces([&](std::int64_t i, std::int64_t end) {
               sum += kLog ? math.sum_of_exp(in + i, largest, end - i)
                           : math.shifted_exp(in + i, largest, out + i, end - i);
             });
      if (!goes) return;
      const float scale = kLog ? std::log(sum) : 1 / sum;
      static_cast<void>(for_pieces([&](std::int64_t i, std::int64_t end) {
        if constexpr (kLog)
          math.lowered(in + i, largest, scale, out + i, end - i);
        else
          math.scaled(out + i, scale, out + i, end - i);
      }));
    } else {
      Columns(in, out, count, 1, 1, pace);
    }
  }

  static void Exp(float* values, std::int64_t count) { BestVectorMath().exp(values, values, count); }
  static void Exp(double* values, std::int64_t count) {
    std::transform(values, values + count, values, [](double x) { return std::exp(x); });
  }

  // Columns beside each other, of which each is a line. The powers of several rows are computed at once.
  template <typename T>
  static void Columns(const T* in, T* out, std::int64_t count, std::int64_t step, std::int64_t columns,
                      Pace& pace) {
    constexpr std::int64_t kElements = 512;
    T most[kBlock];
    T sum[kBlock];
    T powers[kElements];
    std::fill_n(most, columns, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, columns, T{0});
    const std::int64_t some = kElements / columns;
    const auto for_rows = [&](std::int64_t cost, const auto& body) {
      for (std::int64_t first = 0; first < count; first += some) {
        const std::int64_t rows = std::min(some, count - first);
        if (!pace.Spend(cost * rows * columns)) return false;
        body(in + first * step, out + first * step, rows);
      }
      return true;
    };
    bool goes = for_rows(1, [&](const T* from, T*, std::int64_t rows) {
      WideLoop([=, largest = &most[0]] {
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) largest[j] = Larger(from[i * step + j], largest[j]);
        }
      });
    });
    goes = goes && for_rows(4, [&](const T* from, T* to, std::int64_t rows) {
             WideLoop([=, largest = &most[0], shifted = &powers[0]] {
               for (std::int64_t i = 0; i < rows; ++i) {
                 for (std::int64_t j = 0; j < columns; ++j)
                   shifted[i * columns + j] = from[i * step + j] - largest[j];
                 if (kLog) std::copy_n(shifted + i * columns, columns, to + i * step);
               }
             });
             Exp(powers, rows * columns);
             WideLoop([=, total = &sum[0], power = &powers[0]] {
               for (std::int64_t i = 0; i < rows; ++i) {
                 for (std::int64_t j = 0; j < columns; ++j) total[j] += power[i * columns + j];
                 if (!kLog) std::copy_n(power + i * columns, columns, to + i * step);
               }
             });
           });
    if (!goes) return;
    for (std::int64_t j = 0; j < columns; ++j) sum[j] = kLog ? std::log(sum[j]) : 1 / sum[j];
    static_cast<void>(for_rows(1, [&](const T*, T* to, std::int64_t rows) {
      WideLoop([=, by = &sum[0]] {
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            T& value = to[i * step + j];
            value = kLog ? value - by[j] : value * by[j];
          }
        }
      });
    }));
  }
};

}  // namespace

std::span<const Kernel> SoftmaxKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Softmax<false>>("x -> out over x", "f32 f64", "axis = -1",
                               "exp(x) / sum of exp(x) along the axis"),
      Describe<Softmax<true>>("x -> out over x", "f32 f64", "axis = -1", "the logarithm of rewire.softmax"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
