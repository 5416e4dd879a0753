// SPDX-License-Identifier: Apache-2.0
//
// Kernels that go along one axis and keep the shape: running sums and products, the position of the largest
// element.
#include <algorithm>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

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
          for (; i < end; ++i) {
            const std::int64_t at = first + (reverse ? count - 1 - i : i) * step;
            const Total before = total;
            if constexpr (kProduct) {
              total *= static_cast<Total>(in[at]);
            } else {
              total += static_cast<Total>(in[at]);
            }
            to[at] = static_cast<T>(exclusive ? before : total);
          }
        }));
      });
    });
  }

 private:
  // Lines that lie side by side: each row is the result before it and a row of x.
  template <bool kProduct, typename T, typename Total>
  Status RunSideBySide(TensorView x, int along, std::int64_t inner, const T* in, T* to) const {
    constexpr std::int64_t kColumns = 1024;  // as many as the first cache keeps
    if (x.size() == 0) return Status();
    const std::int64_t count = x.dim(along);
    const std::int64_t pieces = (inner + kColumns - 1) / kColumns;
    const auto run_piece = [&](std::int64_t piece, Pace& pace) {
      const std::int64_t column = piece % pieces * kColumns;
      const std::int64_t columns = std::min(kColumns, inner - column);
      const std::int64_t first = piece / pieces * count * inner + column;
      const auto row_of = [&](std::int64_t i) { return first + (reverse ? count - 1 - i : i) * inner; };
      return pace.For(count, columns, [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          T* result = to + row_of(i);
          const T* before = i == 0 ? result : to + row_of(i - 1);
          const T* from = in + row_of(exclusive && i > 0 ? i - 1 : i);
          if (i == 0 && exclusive) {
            std::fill_n(result, columns, T{kProduct ? 1 : 0});
          } else {
            for (std::int64_t j = 0; j < columns; ++j) {
              const auto last = static_cast<Total>(i == 0 ? T{kProduct ? 1 : 0} : before[j]);
              const auto next = static_cast<Total>(from[j]);
              if constexpr (kProduct)
                result[j] = static_cast<T>(last * next);
              else
                result[j] = static_cast<T>(last + next);
            }
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

struct CumSum : Running {
  static constexpr const char* kName = names::kCumSum;
  static Status Make(Attributes& attributes, CumSum* sum) {
    sum->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView axis, TensorView out) const { return Run<false>(x, axis, out); }
};

struct CumProd : Running {
  static constexpr const char* kName = names::kCumProd;
  static Status Make(Attributes& attributes, CumProd* product) {
    product->Read(attributes);
    return Status();
  }
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
      return ForLines(x, along, [&](std::int64_t first, std::int64_t count, std::int64_t step, Pace& pace) {
        std::int64_t best = 0;
        static_cast<void>(pace.For(count, 1, [&](std::int64_t i, std::int64_t end) {
          for (; i < end; ++i) {
            to[first + i * step] = 0;
            if (in[first + i * step] > in[first + best * step]) best = i;
          }
        }));
        to[first + best * step] = 1;
      });
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
