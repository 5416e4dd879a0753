// SPDX-License-Identifier: Apache-2.0
// Positions of extremes along an axis.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

// Whether a later element takes the place of the best so far: of equal ones only if the last is wanted. NaN
// is the extreme, as numpy has it. Without branches, so that compilers compare many elements at once.
template <bool kMax, bool kLast, typename T>
bool Beats(T later, T best) {
  const bool is_number = best == best;
  if constexpr (kLast) {
    const bool is_nan = later != later, is_behind = kMax ? later < best : later > best;
    return is_nan | (is_number & (is_behind ^ true));
  } else {
    const bool is_kept = kMax ? later <= best : later >= best;  // false for NaN
    return is_number & (is_kept ^ true);
  }
}

// Compilers make vectors of loops over so many elements that lie side by side.
constexpr std::int64_t kSide = 16;

// The extreme of a line of contiguous elements, NaN if one is. It is found first and its position then, since
// lanes that keep a position each are several times as slow.
template <bool kMax, typename T>
T ExtremeOf(const T* from, std::int64_t count) {
  T best = from[0];
  std::int64_t k = 0;
  if (count >= kSide) {
    k = count - count % kSide;
    WideLoop([from, end = k, &best] {
      T lanes[kSide];
      std::copy_n(from, kSide, lanes);
      // Once NaN, a lane stays so.
      for (std::int64_t first = 0; first < end; first += kSide) {
        for (std::int64_t i = 0; i < kSide; ++i) {
          const T x = from[first + i];
          const bool keeps = (kMax ? lanes[i] >= x : lanes[i] <= x) | (lanes[i] != lanes[i]);
          lanes[i] = keeps ? lanes[i] : x;
        }
      }
      for (std::int64_t i = 0; i < kSide; ++i) best = Beats<kMax, false>(lanes[i], best) ? lanes[i] : best;
    });
  }
  for (; k < count; ++k) {
    if (Beats<kMax, false>(from[k], best)) best = from[k];
  }
  return best;
}

template <typename T>
bool IsSame(T x, T best) {
  return (x == best) | ((x != x) & (best != best));
}

// The first or last position of an element that is in the line.
template <bool kLast, typename T>
std::int64_t PositionOf(T best, const T* from, std::int64_t count) {
  std::int64_t position = 0;
  WideLoop([=, &position] {
    const auto has = [&](std::int64_t begin) {
      std::int32_t found = 0;
      for (std::int64_t i = 0; i < kSide; ++i)
        found |= static_cast<std::int32_t>(IsSame(from[begin + i], best));
      return found != 0;
    };
    if constexpr (kLast) {
      std::int64_t end = count;
      while (end >= kSide && !has(end - kSide)) end -= kSide;
      while (!IsSame(from[end - 1], best)) --end;
      position = end - 1;
    } else {
      std::int64_t begin = 0;
      while (begin + kSide <= count && !has(begin)) begin += kSide;
      while (!IsSame(from[begin], best)) ++begin;
      position = begin;
    }
  });
  return position;
}

// Short lines, so many at a time that their elements become vectors. Of equal elements the first one met is
// kept: `step` leads from one to the next, backwards where the last is wanted.
constexpr std::int64_t kShortLine = 64, kShortLines = 8;

template <bool kMax, typename T>
void FindInShortLines(const T* from, std::int64_t count, std::int64_t step, std::int64_t line_step,
                      std::int32_t (&positions)[kShortLines]) {
  WideLoop([=, found = &positions[0]] {
    T best[kShortLines];
    std::int32_t place[kShortLines] = {};
    for (std::int64_t i = 0; i < kShortLines; ++i) best[i] = from[i * line_step];
    for (std::int64_t k = 1; k < count; ++k) {
      const T* row = from + k * step;
      for (std::int64_t i = 0; i < kShortLines; ++i) {
        const T x = row[i * line_step];
        const bool beats = Beats<kMax, false>(x, best[i]);
        best[i] = beats ? x : best[i];
        place[i] = beats ? static_cast<std::int32_t>(k) : place[i];
      }
    }
    std::copy_n(place, kShortLines, found);
  });
}

// Lines side by side: so many at once keep their best elements and positions in the first cache.
constexpr std::int64_t kLines = 256;
template <typename T>
inline constexpr std::int64_t kVector = 32 / std::int64_t{sizeof(T)};

// Rows [begin, end), which are `step` elements apart. Their numbers are as wide as elements, and 0 is none:
// so many rows are taken at a time that such a number holds theirs.
template <bool kMax, bool kLast, typename T>
void TakeRows(const T* rows, std::int64_t step, std::int64_t begin, std::int64_t end, std::int64_t lines,
              T* best, std::int64_t* positions) {
  constexpr std::int64_t kFewRows = 8;  // which are not worth the narrow numbers
  WideLoop([=] {
    for (std::int64_t k = begin; k < end && end - begin < kFewRows; ++k) {
      const T* row = rows + k * step;
      for (std::int64_t i = 0; i < lines; ++i) {
        const bool beats = Beats<kMax, kLast>(row[i], best[i]);
        best[i] = beats ? row[i] : best[i];
        positions[i] = beats ? k : positions[i];
      }
    }
    if (end - begin < kFewRows) return;
    using Place = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                     std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>>;
    constexpr std::int64_t kMostRows = sizeof(T) == 1 ? 255 : std::int64_t{1} << 30;
    for (std::int64_t first = begin; first < end; first += kMostRows) {
      const auto count = static_cast<std::int32_t>(std::min(kMostRows, end - first));
      Place places[kLines];
      std::fill_n(places, lines, Place{0});
      for (std::int32_t k = 0; k < count; ++k) {
        const T* row = rows + (first + k) * step;
        const auto place = static_cast<Place>(k + 1);
        for (std::int64_t i = 0; i < lines; ++i) {
          const bool beats = Beats<kMax, kLast>(row[i], best[i]);
          best[i] = beats ? row[i] : best[i];
          places[i] = beats ? place : places[i];
        }
      }
      for (std::int64_t i = 0; i < lines; ++i)
        positions[i] = places[i] == 0 ? positions[i] : first + std::int64_t{places[i]} - 1;
    }
  });
}

// Positions are written as integers of 64 bits or of 32: the loops that find them are for both.
struct Positions {
  explicit Positions(TensorView out) : data(out.raw_data()), is_wide(out.Is<std::int64_t>()) {}
  void Put(std::int64_t i, std::int64_t position) const {
    if (is_wide)
      static_cast<std::int64_t*>(data)[i] = position;
    else
      static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(position);
  }
  void* data;
  bool is_wide;
};

template <bool kMax>
struct ArgReduce : WithAttributes<contract::ArgReduceAttributes> {
  static constexpr const char* kName = kMax ? names::kArgMax : names::kArgMin;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    bool reduced[kMaxKernelRank] = {};
    reduced[along] = true;
    if (Status s = CheckShape("out", out, ReducedDims(x.dims(), reduced, keepdims).view()); !s.ok()) return s;
    if (x.dim(along) == 0)
      return ValueError("x has shape ", x.dims(), ": nothing to choose from along axis ", along);
    if (!out.Is<std::int64_t>() && !out.Is<std::int32_t>()) return WrongDType(Indices(), "out", out);
    return ForType(Numbers(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, along, out); });
  }

 private:
  template <typename T>
  Status Run(TensorView x, int along, TensorView out) const {
    const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
    const std::int64_t count = x.dim(along);
    if (out.size() == 0) return Status();
    if (inner == 1) return OfLines(x.data<T>(), count, out.size(), Positions(out));
    const auto run = [&](auto is_last) {
      constexpr bool kLast = decltype(is_last)::value;
      return OfLinesSideBySide<kLast>(x.data<T>(), count, inner, out.size() / inner, Positions(out));
    };
    return last ? run(std::true_type()) : run(std::false_type());
  }

  template <typename T>
  Status OfLines(const T* from, std::int64_t count, std::int64_t lines, Positions to) const {
    return ParallelFor(lines, GrainOf(kGrain, count), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
      std::int64_t line = begin;
      for (; count <= kShortLine && line + kShortLines <= end; line += kShortLines) {
        if (!pace.Spend(kShortLines * count)) return;
        std::int32_t positions[kShortLines];
        const T* first = from + line * count;
        FindInShortLines<kMax>(last ? first + count - 1 : first, count, last ? -1 : 1, count, positions);
        for (std::int64_t i = 0; i < kShortLines; ++i)
          to.Put(line + i, last ? count - 1 - positions[i] : positions[i]);
      }
      for (; line < end; ++line) {
        const T* x = from + line * count;
        T best = x[0];
        std::int64_t position = 0;
        const bool done = pace.For(count, 1, [&](std::int64_t piece, std::int64_t piece_end) {
          const T extreme = ExtremeOf<kMax>(x + piece, piece_end - piece);
          const bool beats = last ? Beats<kMax, true>(extreme, best) : Beats<kMax, false>(extreme, best);
          if (piece != 0 && !beats) return;
          best = extreme;
          position = piece + (last ? PositionOf<true>(extreme, x + piece, piece_end - piece)
                                   : PositionOf<false>(extreme, x + piece, piece_end - piece));
        });
        if (!done) return;
        to.Put(line, position);
      }
    });
  }

  template <bool kLast, typename T>
  static Status OfLinesSideBySide(const T* from, std::int64_t count, std::int64_t inner, std::int64_t outer,
                                  Positions to) {
    const std::int64_t blocks = (inner + kLines - 1) / kLines;
    return ParallelFor(
        outer * blocks, GrainOf(kGrain, Times(count, std::min(inner, kLines))),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t b = begin; b < end; ++b) {
            const std::int64_t block = b % blocks * kLines, end_of = std::min(inner, block + kLines);
            const auto run = [&](std::int64_t first, std::int64_t lines) {
              const T* rows = from + b / blocks * count * inner + first;
              T best[kLines];
              std::int64_t positions[kLines] = {};
              std::copy_n(rows, lines, best);
              const auto take = [&](std::int64_t k, std::int64_t last_row) {
                TakeRows<kMax, kLast>(rows, inner, k + 1, last_row + 1, lines, best, positions);
              };
              if (!pace.For(count - 1, lines, take)) return false;
              const std::int64_t result = b / blocks * inner + first;
              for (std::int64_t i = 0; i < lines; ++i) to.Put(result + i, positions[i]);
              return true;
            };
            // A last vector takes lines that are left, and some before them once more.
            const std::int64_t lines = end_of - block, whole = lines / kVector<T> * kVector<T>;
            if (whole == 0 || whole == lines) {
              if (!run(block, lines)) return;
            } else if (!run(block, whole) || !run(end_of - kVector<T>, kVector<T>)) {
              return;
            }
          }
        });
  }
};

}  // namespace

std::span<const Kernel> ArgReduceKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ArgReduce<true>>(
          "x -> out", "x f32 f64 i64 i32 i8 u8; out i64 i32", "axis = 0, keepdims = 1, select_last_index = 0",
          "the position of the largest element, the first of several; NaN counts as largest"),
      Describe<ArgReduce<false>>(
          "x -> out", "x f32 f64 i64 i32 i8 u8; out i64 i32", "axis = 0, keepdims = 1, select_last_index = 0",
          "the position of the smallest element, the first of several; NaN counts as smallest"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
