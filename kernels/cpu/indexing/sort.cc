// SPDX-License-Identifier: Apache-2.0
// Elements by rank: the largest ones, the different ones.
#include <algorithm>
#include <limits>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/cpu/indexing/equal_slices.h"
#include "rewire/kernels/cpu/indexing/ordered_key.h"
#include "rewire/kernels/cpu/indexing/positions.h"
#include "rewire/kernels/cpu/indexing/slices.h"
#include "rewire/kernels/cpu/indexing/top_of_columns.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/paced_sort.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

struct TopK : WithAttributes<contract::TopKAttributes> {
  static constexpr const char* kName = names::kTopK;
  Status operator()(TensorView x, TensorView out_values, TensorView out_indices) const {
    Checks checks;
    checks.Dense("x", x).Dense("out_values", out_values).Dense("out_indices", out_indices);
    checks.SameDType("out_values", out_values, "x", x).Rank("out_values", out_values, x.ndim());
    checks.Shape("out_indices", out_indices, out_values.dims());
    checks.NoOverlap("out_values", out_values, "x", x).NoOverlap("out_indices", out_indices, "x", x);
    checks.NoOverlap("out_indices", out_indices, "out_values", out_values);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    Dims expected;
    const std::int64_t k = std::min(x.dim(along), out_values.dim(along));
    if (Status s = contract::TopSizes(x.dims(), along, k, &expected, kShapeError); !s.ok()) return s;
    if (Status s = CheckShape("out_values", out_values, expected.view()); !s.ok()) return s;
    if (!out_indices.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out_indices", out_indices);
    return ForType(AnyNumbers(), "x", x, [&](auto tag) {
      return Run<typename decltype(tag)::type>(x, along, out_values, out_indices);
    });
  }
  // The workspace is for as many rows as there are threads. The host decides how many those are: at most all
  // rows.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0);
    if (x == nullptr) return false;
    sizes.Take(SizeOf(x), sizeof(std::int64_t));
    return true;
  }

 private:
  template <typename T>
  Status Run(TensorView x, int along, TensorView values, TensorView indices) const {
    if (values.size() == 0) return Status();
    const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
    const std::int64_t count = x.dim(along);
    const std::int64_t k = values.dim(along);
    const std::int64_t rows = x.size() / count;
    if (IsBestByColumns<T>(inner, count, k) && count <= std::numeric_limits<std::int32_t>::max())
      return TakeColumns(x.data<T>(), count, inner, k, rows, values.data<T>(), indices.data<std::int64_t>());
    // Scratch for each stretch of rows that may run at the same time.
    const std::int64_t stretches = std::min<std::int64_t>(rows, __rewire_kernel_api->thread_count());
    const std::int64_t stretch = (rows + stretches - 1) / stretches;
    std::int64_t* scratch = nullptr;
    if (Status s = Workspace(Times(stretches, count), &scratch); !s.ok()) return s;
    return ParallelFor(stretches, GrainOf(kGrain, 4, count, stretch),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t s = begin; s < end; ++s) {
                           std::int64_t* order = scratch + s * count;
                           for (std::int64_t r = s * stretch; r < std::min(rows, (s + 1) * stretch); ++r) {
                             const T* in = x.data<T>() + r / inner * count * inner + r % inner;
                             const std::int64_t to = r / inner * k * inner + r % inner;
                             const bool done = Sort(in, inner, count, k, order, pace) &&
                                               pace.For(k, 1, [&](std::int64_t i, std::int64_t last) {
                                                 for (; i < last; ++i) {
                                                   values.data<T>()[to + i * inner] = in[order[i] * inner];
                                                   indices.data<std::int64_t>()[to + i * inner] = order[i];
                                                 }
                                               });
                             if (!done) return;
                           }
                         }
                       });
  }

  // Finds the k first of columns, in groups of columns that lie beside each other.
  template <typename T>
  Status TakeColumns(const T* x, std::int64_t count, std::int64_t inner, std::int64_t k, std::int64_t rows,
                     T* values, std::int64_t* indices) const {
    using Top = TopOfColumns<T>;
    const std::int64_t groups = (inner + Top::kColumns - 1) / Top::kColumns;
    return ParallelFor(rows / inner * groups, GrainOf(kGrain, count, 8),
                       [=, is_largest = largest](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (; begin < end; ++begin) {
                           const std::int64_t outer = begin / groups, first = begin % groups * Top::kColumns;
                           const std::int64_t columns = std::min(Top::kColumns, inner - first);
                           const T* in = x + outer * count * inner + first;
                           Top top(k, is_largest);
                           const auto add = [&](std::int64_t i, std::int64_t last) {
                             top.Add(in, inner, columns, i, last);
                           };
                           if (!pace.For(count, 8 + k, add) || !pace.Spend(k * columns)) return;
                           for (std::int64_t i = 0; i < k; ++i) {
                             const std::int64_t to = (outer * k + i) * inner + first;
                             for (std::int64_t c = 0; c < columns; ++c) {
                               indices[to + c] = top.position(i, c);
                               values[to + c] = in[top.position(i, c) * inner + c];
                             }
                           }
                         }
                       });
  }

  // Whether columns are taken side by side. That takes time for each of them even if there are few.
  template <typename T>
  static bool IsBestByColumns(std::int64_t inner, std::int64_t count, std::int64_t k) {
    using Top = TopOfColumns<T>;
    return inner > 1 && (IsFew(count, k) || (k <= Top::kMostKept && inner >= Top::kColumns / 2));
  }
  // Whether so few are asked for that the first ones so far are best kept in order.
  static bool IsFew(std::int64_t count, std::int64_t k) { return k <= kFew && k * 4 <= count + 12; }

  // Puts the positions of the k first in order; of equal elements the earlier is first.
  template <typename T>
  bool Sort(const T* in, std::int64_t step, std::int64_t count, std::int64_t k, std::int64_t* order,
            Pace& pace) const {
    if (k == 1) return FindFirst(in, step, count, order, pace);
    if (IsFew(count, k)) return SortFew(in, step, count, k, order, pace);
    if constexpr (sizeof(T) <= 4) {
      if (HasKeyedPositions<T>(count)) return SortKeyed(in, step, count, k, order, pace);
    }
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (HasKeyedPositions<std::int32_t>(count) && AreNarrow(in, step, count, pace))
        return SortKeyed(in, step, count, k, order, pace);
    }
    const auto key_at = [](const void* from, std::int64_t at) {
      return static_cast<std::int64_t>(OrderedKeyOf(static_cast<const T*>(from)[at]));
    };
    if constexpr (sizeof(T) == 8) return SortByKey(in, step, key_at, count, k, order, pace);
    // Shorter elements are so many here that a call for each is no matter.
    std::int64_t (*const called)(const void*, std::int64_t) = key_at;
    return SortByKey(in, step, called, count, k, order, pace);
  }

  template <typename KeyAt>
  bool SortByKey(const void* in, std::int64_t step, const KeyAt& key_at, std::int64_t count, std::int64_t k,
                 std::int64_t* order, Pace& pace) const {
    if (!Enumerate(order, count, pace)) return false;
    const auto is_before = [&](std::int64_t i, std::int64_t j) {
      const std::int64_t a = key_at(in, i * step), b = key_at(in, j * step);
      if (a != b) return largest ? a > b : a < b;
      return i < j;
    };
    return PacedSort(is_before, 1, pace).SortFirst(order, k, order + count);
  }

  // Whether std::int32_t holds all elements, as it does most. False if told to stop.
  static bool AreNarrow(const std::int64_t* in, std::int64_t step, std::int64_t count, Pace& pace) {
    constexpr std::uint64_t kHalf = std::uint64_t{1} << 31;
    std::uint64_t high = 0;
    const bool read = pace.For(count, 1, [=, &high](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) high |= (static_cast<std::uint64_t>(in[i * step]) + kHalf) >> 32;
    });
    return read && high == 0;
  }

  // The same by integers that hold an element's key, which 32 bits hold, and its position.
  template <typename T>
  bool SortKeyed(const T* in, std::int64_t step, std::int64_t count, std::int64_t k, std::int64_t* order,
                 Pace& pace) const {
    const std::int32_t flip = largest ? -1 : 0;
    const bool read = pace.For(count, 2, [=](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i)
        order[i] = KeyedPosition(static_cast<std::int32_t>(OrderedKeyOf(in[i * step])) ^ flip, i);
    });
    if (!read || !PacedSort(PositionOrder(), 1, pace).SortFirst(order, k, order + count)) return false;
    return KeepPositions(order, k, pace);
  }

  // The first one alone is chosen without branches, which a CPU would guess wrong.
  template <typename T>
  bool FindFirst(const T* in, std::int64_t step, std::int64_t count, std::int64_t* order, Pace& pace) const {
    using Number = Computed<T>;
    auto best = static_cast<Number>(in[0]);
    std::int64_t place = 0;
    const bool done = pace.For(count, 2, [&, is_largest = largest](std::int64_t i, std::int64_t end) {
      Number first = best;
      std::int64_t at = place;
      for (; i < end; ++i) {
        const auto x = static_cast<Number>(in[i * step]);
        const bool is_before = is_largest ? IsBelow(first, x) : IsBelow(x, first);
        first = is_before ? x : first;
        at = is_before ? i : at;
      }
      best = first;
      place = at;
    });
    order[0] = place;
    return done;
  }

  // The same for so few that the first ones so far are kept in order: most elements are compared with the
  // last of them alone.
  static constexpr std::int64_t kFew = 16;
  template <typename T>
  bool SortFew(const T* in, std::int64_t step, std::int64_t count, std::int64_t k, std::int64_t* order,
               Pace& pace) const {
    using Number = Computed<T>;
    Number first[kFew];
    std::int64_t found = 0;
    return pace.For(count, 2, [&, is_largest = largest](std::int64_t i, std::int64_t end) {
      const auto is_before = [=](Number a, Number b) { return is_largest ? IsBelow(b, a) : IsBelow(a, b); };
      for (; i < end; ++i) {
        const auto x = static_cast<Number>(in[i * step]);
        std::int64_t place = found;
        if (found == k && !is_before(x, first[--place])) continue;
        for (; place > 0 && is_before(x, first[place - 1]); --place) {
          first[place] = first[place - 1];
          order[place] = order[place - 1];
        }
        first[place] = x;
        order[place] = i;
        found += found < k ? 1 : 0;
      }
    });
  }
};

struct TopKShape {
  static constexpr const char* kName = names::kShapeTopK;
  std::int64_t axis = -1;
  static Status Make(Attributes& attributes, TopKShape* top) {
    top->axis = attributes.Int("axis", -1);
    return Status();
  }
  Status operator()(TensorView x, TensorView k, TensorView out) const {
    Dims input, result;
    std::int64_t count = 0;
    int along = 0;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadInt("k", k, &count); !s.ok()) return s;
    if (Status s = NormalizeAxis(axis, input.rank(), &along); !s.ok()) return s;
    Status s = contract::TopSizes(input.view(), along, count, &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

using UniqueTypes = Types<float, std::int64_t, std::int32_t, double, std::int8_t, std::uint8_t>;

struct UniqueShape : WithAttributes<UniqueAttributes> {
  static constexpr const char* kName = names::kShapeUnique;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckDense("x", x); !s.ok()) return s;
    return ForType(UniqueTypes(), "x", x, [&](auto tag) -> Status {
      Slices<typename decltype(tag)::type> slices;
      if (Status s = SlicesOf(*this, x, &slices); !s.ok()) return s;
      EqualSlices equal(slices);
      if (Status s = equal.TakeForCount(); !s.ok()) return s;
      std::int64_t different = 0;
      Pace pace;
      if (!equal.Count(pace, &different)) return Stopped();
      return WriteShape(Dims(ShapeView(&different, 1)), out);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    return EqualSlices<float>::DeclareCount(*this, sizes);
  }
};

struct Unique : WithAttributes<UniqueAttributes> {
  static constexpr const char* kName = names::kUnique;
  Status operator()(TensorView x, TensorView out, TensorView out_indices, TensorView out_inverse,
                    TensorView out_counts) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    const std::pair<const char*, TensorView> lists[] = {
        {"out_indices", out_indices}, {"out_inverse", out_inverse}, {"out_counts", out_counts}};
    for (const auto& [name, list] : lists) {
      checks.Dense(name, list)
          .Rank(name, list, 1)
          .NoOverlap(name, list, "x", x)
          .NoOverlap(name, list, "out", out);
    }
    checks.NoOverlap("out_indices", out_indices, "out_inverse", out_inverse);
    checks.NoOverlap("out_indices", out_indices, "out_counts", out_counts);
    checks.NoOverlap("out_inverse", out_inverse, "out_counts", out_counts);
    if (Status s = checks.Take(); !s.ok()) return s;
    for (const auto& [name, list] : lists) {
      if (!list.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), name, list);
    }
    return ForType(UniqueTypes(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      Slices<T> slices;
      if (Status s = SlicesOf(*this, x, &slices); !s.ok()) return s;
      return Run(slices, x, out, out_indices, out_inverse, out_counts);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const { return EqualSlices<float>::DeclareFind(*this, sizes); }

 private:
  template <typename T>
  Status Run(const Slices<T>& slices, TensorView x, TensorView out, TensorView indices, TensorView inverse,
             TensorView counts) const {
    EqualSlices equal(slices);
    if (Status s = equal.TakeForFind(); !s.ok()) return s;
    Pace pace;
    if (!equal.Find(sorted, pace)) return Stopped();
    const std::int64_t count = slices.count, different = equal.groups();
    const auto place_of = [&, sorted = sorted](std::int64_t group) {
      return sorted ? equal.rank(group) : group;
    };
    Dims expected(ShapeView(&different, 1));
    if (has_axis) {
      expected = Dims(x.dims());
      expected[static_cast<int>(axis < 0 ? axis + x.ndim() : axis)] = different;
    }
    Checks checks;
    checks.Shape("out", out, expected.view()).Shape("out_indices", indices, ShapeView(&different, 1));
    checks.Shape("out_inverse", inverse, ShapeView(&count, 1))
        .Shape("out_counts", counts, ShapeView(&different, 1));
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!pace.Fill(counts.data<std::int64_t>(), different, std::int64_t{0})) return Stopped();
    const bool counted = pace.For(count, 4, [&](std::int64_t i, std::int64_t end) {
      auto *to = inverse.data<std::int64_t>(), *sums = counts.data<std::int64_t>();
      for (; i < end; ++i) {
        const std::int64_t place = place_of(equal.group(i));
        to[i] = place;
        ++sums[place];
      }
    });
    if (!counted) return Stopped();
    auto* from = indices.data<std::int64_t>();
    const bool placed = pace.For(different, 2, [&](std::int64_t g, std::int64_t end) {
      for (; g < end; ++g) from[place_of(g)] = equal.first(g);
    });
    if (!placed) return Stopped();
    for (std::int64_t o = 0; o < slices.outer; ++o) {
      const T* in = slices.data + o * count * slices.inner;
      if (!CopySlices(in, slices.inner, from, different, out.data<T>() + o * different * slices.inner, pace))
        return Stopped();
    }
    return Status();
  }

  // The slices of `inner` elements that `from` names, one after another.
  template <typename T>
  static bool CopySlices(const T* in, std::int64_t inner, const std::int64_t* from, std::int64_t count, T* to,
                         Pace& pace) {
    if (inner == 1) {
      return pace.For(count, 1, [=](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) to[i] = in[from[i]];
      });
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (!pace.Copy(to + i * inner, in + from[i] * inner, Times(inner, sizeof(T)))) return false;
    }
    return true;
  }
};

}  // namespace

std::span<const Kernel> SortKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<TopK>("x -> out_values, out_indices", "x, out_values any number; out_indices i64",
                     "axis = -1, largest = 1, sorted = 1",
                     "the largest (or smallest) elements along the axis, in order, and where they are; out's "
                     "length says how many; equal ones in their order, NaN above all"),
      Describe<TopKShape>("x, k -> out", "x i64 i32; k any integer; out i64", "axis = -1",
                          "the shape of rewire.top_k's out from x's shape and k itself"),
      Describe<Unique>(
          "x -> out, out_indices, out_inverse, out_counts", "x, out f32 f64 i64 i32 i8 u8; others i64",
          "axis = none, sorted = 1",
          "the different slices along the axis (elements of all of x without), where each is "
          "first, which of them each slice of x is, and how many of each there are; sorted or as "
          "they appear"),
      Describe<UniqueShape>("x -> out", "x f32 f64 i64 i32 i8 u8; out i64", "axis = none, sorted = 1",
                            "how many rewire.unique finds in x (x itself, not its shape): [count]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
