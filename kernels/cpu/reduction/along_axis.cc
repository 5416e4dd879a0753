// SPDX-License-Identifier: Apache-2.0
//
// Kernels that go along one axis and keep the shape: running sums and products, the position of the largest
// element.
#include <algorithm>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/largest_above.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

Status CheckKept(TensorView x, TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
  return checks.NoOverlap("out", out, "x", x).Take();
}

// body(first element, elements, step, pace) for each line of x along the axis.
template <typename Body>
Status ForLines(TensorView x, int along, const Body& body) {
  const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
  const std::int64_t count = x.dim(along);
  if (x.size() == 0) return Status();
  return ParallelFor(x.size() / count, GrainOf(kGrain, count),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t i = begin; i < end && !pace.stopped(); ++i)
                         body(i / inner * count * inner + i % inner, count, inner, pace);
                     });
}

// A running sum or product.
struct Running : contract::RunningAttributes {
 protected:
  template <bool kProduct>
  Status Run(TensorView x, TensorView axis, TensorView out) const {
    if (Status s = CheckKept(x, out); !s.ok()) return s;
    std::int64_t given = 0;
    int along = 0;
    if (Status s = ReadInt("axis", axis, &given); !s.ok()) return s;
    if (Status s = NormalizeAxis(given, x.ndim(), &along); !s.ok()) return s;
    return ForType(Types<float, double, std::int64_t, std::int32_t>(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;  // integers wrap
      const T* in = x.data<T>();
      T* to = out.data<T>();
      // A row of a few lines costs more than a line.
      const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
      if (inner >= 4) return RunSideBySide<kProduct, T, Total>(x, along, inner, in, to);
      return ForLines(x, along, [&](std::int64_t first, std::int64_t count, std::int64_t step, Pace& pace) {
        Total total = kProduct ? 1 : 0;
        static_cast<void>(pace.For(count, 1, [&](std::int64_t i, std::int64_t end) {
          const std::int64_t start = first + (reverse ? count - 1 - i : i) * step;
          total =
              RunLine<kProduct>(total, end - i, reverse ? -step : step, exclusive, in + start, to + start);
        }));
      });
    });
  }

 private:
  // `total` is the result of what comes before. All that the loop reads is its own, so that it stays in
  // registers while elements are written.
  template <bool kProduct, typename T, typename Total>
  static Total RunLine(Total total, std::int64_t count, std::int64_t step, bool exclusive, const T* in,
                       T* to) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Total before = total, next = static_cast<Total>(in[i * step]);
      total = kProduct ? total * next : total + next;
      to[i * step] = static_cast<T>(exclusive ? before : total);
    }
    return total;
  }

  // Lines that lie side by side: each row is the result before it and a row of x.
  template <bool kProduct, typename T, typename Total>
  Status RunSideBySide(TensorView x, int along, std::int64_t inner, const T* in, T* to) const {
    constexpr std::int64_t kColumns = 1024;  // as many as the first cache keeps
    constexpr std::int64_t kFewColumns = 32;
    if (x.size() == 0) return Status();
    const std::int64_t count = x.dim(along);
    const std::int64_t pieces = (inner + kColumns - 1) / kColumns;
    const auto run_piece = [&](std::int64_t piece, Pace& pace) {
      const std::int64_t column = piece % pieces * kColumns;
      const std::int64_t columns = std::min(kColumns, inner - column);
      const std::int64_t first = piece / pieces * count * inner + column;
      const auto row_of = [&](std::int64_t i) { return first + (reverse ? count - 1 - i : i) * inner; };
      return pace.For(count, columns, [&](std::int64_t i, std::int64_t end) {
        constexpr T kNothing = kProduct ? 1 : 0;
        const auto join = [](T last, T next) {
          if constexpr (kProduct)
            return static_cast<T>(static_cast<Total>(last) * static_cast<Total>(next));
          else
            return static_cast<T>(static_cast<Total>(last) + static_cast<Total>(next));
        };
        for (; i < end; ++i) {
          if (i > 0 && columns <= kFewColumns) {
            // A call for each row would take longer than its columns.
            WideLoop([=, rows = end - i, next = row_of(1) - row_of(0), result = to + row_of(i),
                      from = in + row_of(exclusive ? i - 1 : i)] {
              for (std::int64_t r = 0; r < rows; ++r) {
                T* row = result + r * next;
                for (std::int64_t j = 0; j < columns; ++j) row[j] = join(row[j - next], from[r * next + j]);
              }
            });
            return;
          }
          T* result = to + row_of(i);
          if (i == 0 && exclusive) {
            std::fill_n(result, columns, kNothing);
          } else if (i == 0) {
            const T* from = in + row_of(i);
            for (std::int64_t j = 0; j < columns; ++j) result[j] = join(kNothing, from[j]);
          } else {
            WideLoop([=, before = to + row_of(i - 1), from = in + row_of(exclusive ? i - 1 : i)] {
              for (std::int64_t j = 0; j < columns; ++j) result[j] = join(before[j], from[j]);
            });
          }
        }
      });
    };
    return ParallelFor(Times(x.size() / count / inner, pieces),
                       GrainOf(kGrain, count, std::min(inner, kColumns)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (; begin < end; ++begin) {
                           if (!run_piece(begin, pace)) return;
                         }
                       });
  }
};

struct CumSum : WithAttributes<Running> {
  static constexpr const char* kName = names::kCumSum;
  Status operator()(TensorView x, TensorView axis, TensorView out) const { return Run<false>(x, axis, out); }
};

struct CumProd : WithAttributes<Running> {
  static constexpr const char* kName = names::kCumProd;
  Status operator()(TensorView x, TensorView axis, TensorView out) const { return Run<true>(x, axis, out); }
};

struct Hardmax {
  static constexpr const char* kName = names::kHardmax;
  std::int64_t axis = -1;
  static Status Make(Attributes& attributes, Hardmax* hardmax) {
    hardmax->axis = attributes.Int("axis", -1);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckKept(x, out); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* in = x.data<T>();
      T* to = out.data<T>();
      const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
      if (inner > 1) return RunSideBySide(x.dim(along), inner, x.size(), in, to);
      if (x.dim(along) <= kShort) return RunShort(x.dim(along), x.size(), in, to);
      return ForLines(x, along, [&](std::int64_t first, std::int64_t count, std::int64_t, Pace& pace) {
        T most = in[first];
        std::int64_t best = 0;
        static_cast<void>(pace.For(count, 1, [&](std::int64_t begin, std::int64_t end) {
          const T* line = in + first;
          std::fill(to + first + begin, to + first + end, T{0});
          const T largest = LargestAbove(most, line + begin, end - begin);
          if (!(largest > most)) return;
          most = largest;
          best = std::find(line + begin, line + end, largest) - line;
        }));
        to[first + best] = 1;
      });
    });
  }

 private:
  // Lines of so few elements that a call for each would take longer than the search.
  static constexpr std::int64_t kShort = 4096;
  template <typename T>
  static Status RunShort(std::int64_t count, std::int64_t size, const T* in, T* to) {
    if (size == 0) return Status();
    return ParallelFor(size / count, GrainOf(kGrain, count), [=](std::int64_t begin, std::int64_t end) {
      WideLoop([=] {
        std::int64_t i = begin;
        if (count < kSide) {
          for (; i + kSide <= end; i += kSide) MarkSideBySide(in + i * count, count, to + i * count);
        }
        for (; i < end; ++i) MarkLargest(in + i * count, count, to + i * count);
      });
    });
  }

  static constexpr std::int64_t kSide = 16;
  // kSide lines at once.
  template <typename T>
  static void MarkSideBySide(const T* in, std::int64_t count, T* to) {
    T most[kSide];
    std::int32_t places[kSide] = {};
    for (std::int64_t k = 0; k < kSide; ++k) most[k] = in[k * count];
    for (std::int32_t i = 1; i < count; ++i) {
      for (std::int64_t k = 0; k < kSide; ++k) {
        const T x = in[k * count + i];
        const bool beats = x > most[k];
        most[k] = beats ? x : most[k];
        places[k] = beats ? i : places[k];
      }
    }
    std::fill_n(to, kSide * count, T{0});
    for (std::int64_t k = 0; k < kSide; ++k) to[k * count + places[k]] = 1;
  }

  // Marks the first one of the largest. NaN is larger than nothing, and nothing is larger than it.
  template <typename T>
  static void MarkLargest(const T* line, std::int64_t count, T* to) {
    const T first = line[0];
    T largest = first;
    std::int64_t i = 0;
    if (count >= kSide) {
      T lanes[kSide];
      std::fill_n(lanes, kSide, first);
      for (; i + kSide <= count; i += kSide) {
        for (std::int64_t k = 0; k < kSide; ++k) lanes[k] = line[i + k] > lanes[k] ? line[i + k] : lanes[k];
      }
      for (std::int64_t half = kSide / 2; half > 0; half /= 2) {
        for (std::int64_t k = 0; k < half; ++k)
          lanes[k] = lanes[k + half] > lanes[k] ? lanes[k + half] : lanes[k];
      }
      largest = lanes[0];
    }
    for (; i < count; ++i) largest = line[i] > largest ? line[i] : largest;
    std::int32_t marked = 0;
    for (i = 0; i < count; ++i) {
      const bool is_largest = line[i] == largest;
      to[i] = is_largest ? T{1} : T{0};
      marked += is_largest ? 1 : 0;
    }
    if (marked == 1) return;
    // None is marked if the first one is NaN.
    const std::int64_t place = first != first ? 0 : std::find(line, line + count, largest) - line;
    std::fill_n(to, count, T{0});
    to[place] = 1;
  }

  // The row of this number in lines that lie side by side.
  template <typename T>
  static void TakeRow(const T* row, std::int64_t columns, std::int64_t number, T* most,
                      std::int64_t* places) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const bool beats = row[j] > most[j];
      most[j] = beats ? row[j] : most[j];
      places[j] = beats ? number : places[j];
    }
  }

  // Lines that lie side by side, so many at once that their largest elements stay in the first cache.
  template <typename T>
  static Status RunSideBySide(std::int64_t count, std::int64_t inner, std::int64_t size, const T* in, T* to) {
    constexpr std::int64_t kColumns = 256;
    if (size == 0) return Status();
    const std::int64_t pieces = (inner + kColumns - 1) / kColumns;
    return ParallelFor(Times(size / count / inner, pieces), GrainOf(kGrain, count, std::min(inner, kColumns)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (; begin < end; ++begin) {
                           const std::int64_t column = begin % pieces * kColumns;
                           const std::int64_t columns = std::min(kColumns, inner - column);
                           const std::int64_t first = begin / pieces * count * inner + column;
                           T most[kColumns];
                           std::int64_t places[kColumns] = {};
                           std::copy_n(in + first, columns, most);
                           // Rows of few columns are joined: a call for each would take longer.
                           const std::int64_t at_once = std::max<std::int64_t>(1, kColumns / columns);
                           for (std::int64_t i = 0; i < count; i += at_once) {
                             const std::int64_t rows = std::min(at_once, count - i);
                             if (!pace.Spend(2 * rows * columns)) return;
                             const std::int64_t row = first + i * inner;
                             if (pieces == 1) {
                               std::fill_n(to + row, rows * inner, T{0});
                             } else {
                               for (std::int64_t r = 0; r < rows; ++r)
                                 std::fill_n(to + row + r * inner, columns, T{0});
                             }
                             WideLoop([=, from = in + row, &most, &places] {
                               for (std::int64_t r = 0; r < rows; ++r)
                                 TakeRow(from + r * inner, columns, i + r, most, places);
                             });
                           }
                           for (std::int64_t j = 0; j < columns; ++j) to[first + places[j] * inner + j] = 1;
                         }
                       });
  }
};

}  // namespace

std::span<const Kernel> AlongAxisKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<CumSum>("x, axis -> out", "x, out f32 f64 i64 i32; axis any integer",
                       "exclusive = 0, reverse = 0",
                       "the sum of the elements up to each one, without it if exclusive, from the end if "
                       "reverse; integers wrap"),
      Describe<CumProd>("x, axis -> out", "x, out f32 f64 i64 i32; axis any integer",
                        "exclusive = 0, reverse = 0",
                        "the product of the elements up to each one, as rewire.cumsum"),
      Describe<Hardmax>("x -> out", "f32 f64", "axis = -1",
                        "1 at the first largest element along the axis, 0 elsewhere"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
