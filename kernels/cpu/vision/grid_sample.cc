// SPDX-License-Identifier: Apache-2.0
// Images sampled at the positions of a grid, and the grids of affine maps.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "rewire/kernels/contract/vision.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/vision/grid_sums.h"
#include "rewire/kernels/cpu/vision/grid_taps.h"

namespace rewire::kernel::cpu {
namespace {

constexpr int kMaxAxes = contract::kMostSampledAxes;

struct GridSample : GridTaps {
  static constexpr const char* kName = names::kGridSample;
  static Status Make(Attributes& attributes, GridSample* sample) {
    // Opset 20 renamed bilinear and bicubic.
    constexpr Mode kModes[] = {kLinear, kNearest, kCubic, kLinear, kCubic};
    sample->mode =
        kModes[attributes.Choice("mode", {"bilinear", "nearest", "bicubic", "linear", "cubic"}, 0)];
    sample->padding =
        static_cast<Padding>(attributes.Choice("padding_mode", {"zeros", "border", "reflection"}, kZeros));
    sample->align_corners = attributes.Bool("align_corners", false);
    return Status();
  }

  Status operator()(TensorView x, TensorView grid, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("grid", grid).Dense("out", out).SameDType("grid", grid, "x", x);
    checks.SameDType("out", out, "x", x).NoOverlap("out", out, "x", x).NoOverlap("out", out, "grid", grid);
    if (Status s = checks.Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = contract::SampledSizes(x.dims(), grid.dims(), &expected, kShapeError); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const int axes = x.ndim() - 2;
    if (axes > 2 && mode == kCubic)
      return ValueError("cubic sampling takes two axes, x has shape ", x.dims());
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, grid, out); });
  }

 private:
  template <typename T>
  Status Run(TensorView x, TensorView grid, TensorView out) const {
    const std::int64_t plane = Product(x.dims(), 2, x.ndim());
    if (plane > std::numeric_limits<std::int32_t>::max()) return RunAxes<T, std::int64_t>(x, grid, out);
    return RunAxes<T, std::int32_t>(x, grid, out);
  }
  template <typename T, typename Offset>
  Status RunAxes(TensorView x, TensorView grid, TensorView out) const {
    switch (x.ndim() - 2) {
      case 1:
        return RunBlocks<T, Offset, 1>(x, grid, out);
      case 2:
        return RunBlocks<T, Offset, 2>(x, grid, out);
      default:
        return RunBlocks<T, Offset, 3>(x, grid, out);
    }
  }

  template <typename T, typename Offset, int kAxes>
  Status RunBlocks(TensorView x, TensorView grid, TensorView out) const {
    const std::int64_t inputs = Product(x.dims(), 2, x.ndim());
    const std::int64_t points = Product(out.dims(), 2, out.ndim());
    const std::int64_t channels = x.dim(1);
    const int count = CountTaps(kAxes);
    const SumGridTaps of_gathered = ChooseSumGridTaps();
    const std::int64_t size = BlockOf(points, count), blocks = (points + size - 1) / size;
    return ParallelFor(Times(x.dim(0), blocks), GrainOf(kGrain, std::min(points, size), Plus(channels, 8)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         Taps<T, Offset> taps;
                         taps.count = count;
                         taps.points = size;
                         for (std::int64_t i = begin; i < end; ++i) {
                           const std::int64_t image = i / blocks, first = i % blocks * size;
                           const std::int64_t some = std::min(size, points - first);
                           const T* at = grid.data<T>() + (image * points + first) * kAxes;
                           if (!FindTaps<kAxes>(x.dims(), at, some, &taps, pace)) return;
                           for (std::int64_t c = image * channels; c < (image + 1) * channels; ++c) {
                             if (!pace.Spend(2 * some * count)) return;
                             const T* from = x.data<T>() + c * inputs;
                             Sum(inputs == 0 ? nullptr : from, taps, some, of_gathered,
                                 out.data<T>() + c * points + first);
                           }
                         }
                       });
  }

  // The points of a block: several blocks of an image are tasks of several threads.
  static std::int64_t BlockOf(std::int64_t points, int taps) {
    constexpr std::int64_t kBlocks = 8;
    const std::int64_t some = (points / kBlocks + kPoints) / kPoints * kPoints;
    return std::min(some, kBlockTaps / taps);
  }

  // Returns false if told to stop.
  template <int kAxes, typename T, typename Offset>
  bool FindTaps(ShapeView x, const T* at, std::int64_t points, Taps<T, Offset>* taps, Pace& pace) const {
    AxisTaps axes[kAxes];
    for (std::int64_t first = 0; first < points; first += kPoints) {
      const std::int64_t count = std::min(kPoints, points - first);
      if (!pace.Spend(16 * count)) return false;
      // Coordinates count the axes backwards.
      for (int a = 0; a < kAxes; ++a) {
        FindAxisTaps(at + first * kAxes + (kAxes - 1 - a), kAxes, x[static_cast<std::size_t>(2 + a)], count,
                     &axes[a]);
      }
      Combine<kAxes>(x, axes, first, count, taps);
    }
    return true;
  }

  // A plane of no elements is null.
  template <typename T, typename Offset>
  void Sum(const T* plane, const Taps<T, Offset>& taps, std::int64_t points, SumGridTaps of_gathered,
           T* to) const {
    const T zero = 0;
    const T* elements = plane == nullptr ? &zero : plane;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Offset, std::int32_t>) {
      if (of_gathered != nullptr && mode != kNearest)
        return of_gathered(elements, taps.offsets, taps.weights, taps.points, taps.count, points, to);
    }
    if (taps.count == 4) return SumTaps<4>(elements, taps, points, to);
    SumTaps<0>(elements, taps, points, to);
  }
  // The usual number of taps is known to the compiler: the sum of a point stays in a register then. Sums of
  // some points are the loop's own before they are written, so that nothing it reads can be among them.
  template <int kTaps, typename T, typename Offset>
  void SumTaps(const T* elements, const Taps<T, Offset>& taps, std::int64_t points, T* to) const {
    WideLoop([=, count = kTaps == 0 ? taps.count : kTaps, step = taps.points, all_offsets = &taps.offsets[0],
              all_weights = &taps.weights[0], nearest = mode == kNearest] {
      for (std::int64_t first = 0; first < points; first += kPoints) {
        const Offset* offsets = all_offsets + first;
        const T* weights = all_weights + first;
        // An absent element is read where one is, so that the loads need no branch.
        const auto value = [=](std::int64_t place) {
          const Offset offset = offsets[place];
          const T element = elements[offset < 0 ? 0 : offset];
          return offset < 0 ? T{0} : element;
        };
        const std::int64_t some = std::min(kPoints, points - first);
        T sums[kPoints] = {};
        if (kTaps != 0) {
          for (std::int64_t p = 0; p < some; ++p) {
            T sum = 0;
            for (int k = 0; k < kTaps; ++k) sum += weights[k * step + p] * value(k * step + p);
            sums[p] = sum;
          }
        } else if (nearest) {
          for (std::int64_t p = 0; p < some; ++p) sums[p] = value(p);
        } else {
          for (int k = 0; k < count; ++k) {
            for (std::int64_t p = 0; p < some; ++p) sums[p] += weights[k * step + p] * value(k * step + p);
          }
        }
        for (std::int64_t p = 0; p < some; ++p) to[first + p] = sums[p];
      }
    });
  }
};

struct GridSampleShape {
  static constexpr const char* kName = names::kShapeGridSample;
  Status operator()(TensorView x, TensorView grid, TensorView out) const {
    Dims input, points, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("grid", grid, &points); !s.ok()) return s;
    Status s = contract::SampledSizes(input.view(), points.view(), &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

struct AffineGrid {
  static constexpr const char* kName = names::kAffineGrid;
  bool align_corners = false;
  static Status Make(Attributes& attributes, AffineGrid* grid) {
    grid->align_corners = attributes.Bool("align_corners", false);
    return Status();
  }
  // theta [N, axes, axes + 1] maps the positions of an image of out's size, [N, D..., axes].
  Status operator()(TensorView theta, TensorView out) const {
    Checks checks;
    checks.Dense("theta", theta)
        .Dense("out", out)
        .SameDType("out", out, "theta", theta)
        .Rank("theta", theta, 3);
    if (Status s = checks.NoOverlap("out", out, "theta", theta).Take(); !s.ok()) return s;
    const int axes = out.ndim() - 2;
    if (axes < 1 || axes > kMaxAxes || out.dim(axes + 1) != axes || out.dim(0) != theta.dim(0)) {
      return ValueError("out has shape ", out.dims(), ", expected [", theta.dim(0), ", ..., axes] with 1 to ",
                        kMaxAxes, " axes");
    }
    const std::int64_t expected[] = {theta.dim(0), axes, axes + 1};
    if (Status s = CheckShape("theta", theta, ShapeView(expected, 3)); !s.ok()) return s;
    return ForType(Floats(), "theta", theta, [&](auto tag) {
      using T = typename decltype(tag)::type;
      switch (axes) {
        case 1:
          return Run<T, 1>(theta, out);
        case 2:
          return Run<T, 2>(theta, out);
        default:
          return Run<T, 3>(theta, out);
      }
    });
  }

 private:
  template <typename T, int kAxes>
  Status Run(TensorView theta, TensorView out) const {
    const std::int64_t line = out.dim(kAxes);
    const std::int64_t lines = Product(out.dims(), 1, kAxes);
    return ParallelFor(
        Times(out.dim(0), lines), GrainOf(kGrain, line, 2 * kAxes),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          // The last axis has the same ones in all lines.
          double coordinates[kTable];
          for (std::int64_t at = 0; at < line; at += kTable) {
            const std::int64_t count = std::min(kTable, line - at);
            for (std::int64_t i = 0; i < count; ++i)
              coordinates[i] = Coordinate(static_cast<double>(at + i), line);
            Position<kAxes> position(*this, out, begin % lines);
            const bool done =
                pace.For(end - begin, Times(count, 2 * kAxes), [&](std::int64_t first, std::int64_t last) {
                  // One loop for all lines, which may be short.
                  WideLoop([=, of = &position, table = &coordinates[0], maps = theta.data<T>(),
                            to = out.data<T>() + at * kAxes] {
                    for (std::int64_t i = begin + first; i < begin + last; ++i, of->Advance()) {
                      WriteLine<T, kAxes>(maps + i / lines * kAxes * (kAxes + 1), of->of, table, count,
                                          to + i * line * kAxes);
                    }
                  });
                });
            if (!done) return;
          }
        });
  }
  static constexpr std::int64_t kTable = 512;

  // The coordinates of a line's axes but the last, from the second last on, and 1 for the last column.
  template <int kAxes>
  struct Position {
    Position(const AffineGrid& grid, TensorView out, std::int64_t line) : grid(grid) {
      for (int k = 1; k < kAxes; ++k) {
        dims[k] = out.dim(kAxes - k);
        Move(k, line % dims[k]);
        line /= dims[k];
      }
      of[kAxes] = 1;
    }
    void Move(int k, std::int64_t place) {
      places[k] = place;
      of[k] = grid.Coordinate(static_cast<double>(place), dims[k]);
    }
    void Advance() {
      for (int k = 1; k < kAxes; ++k) {
        if (places[k] + 1 < dims[k]) return Move(k, places[k] + 1);
        Move(k, 0);
      }
    }
    const AffineGrid& grid;
    std::int64_t dims[kAxes] = {}, places[kAxes] = {};
    double of[kAxes + 1] = {};
  };

  // `count` points of a line, by their coordinates. What the other axes add is the same for all.
  template <typename T, int kAxes>
  static void WriteLine(const T* rows, const double (&position)[kAxes + 1], const double* coordinates,
                        std::int64_t count, T* to) {
    struct Row {
      double factor, terms[kAxes];
    } sums[kAxes];
    for (int r = 0; r < kAxes; ++r) {
      const T* row = rows + r * (kAxes + 1);
      sums[r].factor = static_cast<double>(row[0]);
      for (int k = 1; k <= kAxes; ++k) sums[r].terms[k - 1] = static_cast<double>(row[k]) * position[k];
    }
    for (std::int64_t i = 0; i < count; ++i) {
      for (int r = 0; r < kAxes; ++r) {
        double sum = sums[r].factor * coordinates[i];
        for (int k = 0; k < kAxes; ++k) sum += sums[r].terms[k];
        to[i * kAxes + r] = static_cast<T>(sum);
      }
    }
  }

  double Coordinate(double x, std::int64_t dim) const {
    const auto size = static_cast<double>(dim);
    if (!align_corners) return (2 * x + 1) / size - 1;
    return dim == 1 ? 0 : 2 * x / (size - 1) - 1;
  }
};

}  // namespace

std::span<const Kernel> GridSampleKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<GridSample>(
          "x, grid -> out", "f32 f64",
          "mode = bilinear, nearest, bicubic, linear or cubic, padding_mode = zeros, border or "
          "reflection, align_corners = 0",
          "x [N, C, ...] with one to three spatial axes at the positions of grid [N, ..., axes] in "
          "[-1, 1], the last axis' coordinate first"),
      Describe<GridSampleShape>("x, grid -> out", "i64 i32; out i64", "",
                                "the shape of rewire.grid_sample's out"),
      Describe<AffineGrid>(
          "theta -> out", "f32 f64", "align_corners = 0",
          "where the maps theta [N, axes, axes + 1] take the positions of an image: out [N, ..., "
          "axes] for rewire.grid_sample"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
