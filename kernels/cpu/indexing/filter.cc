// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose output size depends on the values of the inputs. The shape function counts, and the kernel
// writes.
#include <algorithm>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/cpu/movement/strided_copy.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

// body(is_nonzero) where is_nonzero(i) tells about element i. Both zeros of floats are zero.
template <typename Body>
Status WithNonZero(TensorView x, const Body& body) {
  return ForElementSize("x", x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool has_sign_bit = x.dtype().code == kDLFloat || x.dtype().code == kDLBfloat;
    const T mask = static_cast<T>(has_sign_bit ? static_cast<T>(-1) >> 1 : static_cast<T>(-1));
    const T* data = x.data<T>();
    return body([data, mask](std::int64_t i) { return static_cast<T>(data[i] & mask) != 0; });
  });
}

struct NonZeroShape {
  static constexpr const char* kName = names::kShapeNonZero;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckDense("x", x); !s.ok()) return s;
    return WithNonZero(x, [&](auto is_nonzero) -> Status {
      std::int64_t count = 0;
      Status counted = SerialFor(x.size(), 1, [&](std::int64_t begin, std::int64_t end) {
        WideLoop([=, &count] {
          std::int64_t found = 0;
          for (std::int64_t i = begin; i < end; ++i) found += is_nonzero(i) ? 1 : 0;
          count += found;
        });
      });
      if (!counted.ok()) return counted;
      const std::int64_t shape[] = {x.ndim(), count};
      return WriteShape(Dims(ShapeView(shape, 2)), out);
    });
  }
};

struct NonZero {
  static constexpr const char* kName = names::kNonZero;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Rank("out", out, 2).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out", out);
    return WithNonZero(x, [&](auto is_nonzero) -> Status {
      const std::int64_t room = out.dim(1);
      const std::int64_t size = x.size();
      std::int64_t found = 0;
      if (Status s = CheckShape("out", out, Pair(x.ndim(), room).view()); !s.ok()) return s;
      const std::int64_t line = x.ndim() == 0 ? 1 : x.dim(x.ndim() - 1);
      Status searched = SerialFor(size, 2, [&](std::int64_t i, std::int64_t end) {
        while (i < end) {
          const std::int64_t first = i % line;
          const std::int64_t count = std::min({end - i, line - first, kPlaces});
          std::int64_t places[kPlaces];
          const std::int64_t here = PlacesOf(is_nonzero, i, count, first, places);
          const std::int64_t fitting = std::clamp<std::int64_t>(room - found, 0, here);
          WritePlaces(x, i / line, places, fitting, room, out.data<std::int64_t>() + found);
          found += here;
          i += count;
        }
      });
      if (!searched.ok()) return searched;
      return CheckShape("out", out, Pair(x.ndim(), found).view());
    });
  }

 private:
  static constexpr std::int64_t kPlaces = 256;

  // The positions along the last axis, from `first` on, of those of `count` elements that are not 0. Without
  // a branch, which would be guessed wrong.
  template <typename IsNonZero>
  static std::int64_t PlacesOf(IsNonZero is_nonzero, std::int64_t i, std::int64_t count, std::int64_t first,
                               std::int64_t* places) {
    std::int64_t found = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      places[found] = first + k;
      found += is_nonzero(i + k) ? 1 : 0;
    }
    return found;
  }

  // `outer` numbers the line of the last axis in which the places are.
  static void WritePlaces(TensorView x, std::int64_t outer, const std::int64_t* places, std::int64_t count,
                          std::int64_t room, std::int64_t* to) {
    const int last = x.ndim() - 1;
    if (last < 0 || count == 0) return;
    std::copy_n(places, count, to + last * room);
    for (int axis = last - 1; axis >= 0; --axis) {
      std::fill_n(to + axis * room, count, outer % x.dim(axis));
      outer /= x.dim(axis);
    }
  }

  static Dims Pair(std::int64_t a, std::int64_t b) {
    const std::int64_t pair[] = {a, b};
    return Dims(ShapeView(pair, 2));
  }
};

struct CompressAttributes {
  bool has_axis = false;
  std::int64_t axis = 0;

  void Read(Attributes& attributes) {
    has_axis = attributes.Has("axis");
    axis = attributes.Int("axis", 0);
  }
  // x as [outer, count, inner] and the shape of what `condition` leaves.
  Status Resolve(TensorView x, TensorView condition, std::int64_t (&sizes)[3], Dims* result) const {
    Checks checks;
    checks.Dense("x", x).Dense("condition", condition).Rank("condition", condition, 1);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!condition.Is<bool>()) return WrongDType(Bools(), "condition", condition);
    int along = 0;
    sizes[0] = sizes[2] = 1;
    sizes[1] = x.size();
    if (has_axis) {
      if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
      sizes[0] = Product(x.dims(), 0, along);
      sizes[1] = x.dim(along);
      sizes[2] = Product(x.dims(), along + 1, x.ndim());
    }
    if (condition.dim(0) > sizes[1]) {
      return ValueError("condition has shape ", condition.dims(), ", expected at most ", sizes[1],
                        " elements for x of shape ", x.dims());
    }
    const auto* taken = condition.data<std::uint8_t>();
    std::int64_t kept = 0;
    Status counted = SerialFor(condition.dim(0), 1, [&](std::int64_t begin, std::int64_t end) {
      kept += std::count_if(taken + begin, taken + end, [](std::uint8_t take) { return take != 0; });
    });
    if (!counted.ok()) return counted;
    *result = has_axis ? Dims(x.dims()) : Dims(ShapeView(&kept, 1));
    (*result)[along] = kept;
    return Status();
  }
};

struct CompressShape : WithAttributes<CompressAttributes> {
  static constexpr const char* kName = names::kShapeCompress;
  Status operator()(TensorView x, TensorView condition, TensorView out) const {
    std::int64_t sizes[3];
    Dims result;
    if (Status s = Resolve(x, condition, sizes, &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct Compress : WithAttributes<CompressAttributes> {
  static constexpr const char* kName = names::kCompress;
  Status operator()(TensorView x, TensorView condition, TensorView out) const {
    std::int64_t sizes[3];
    Dims expected;
    if (Status s = Resolve(x, condition, sizes, &expected); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, expected.view());
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "condition", condition);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (out.size() == 0) return Status();
    const auto* taken = condition.data<std::uint8_t>();
    const std::int64_t run = Times(sizes[2], x.element_bytes());
    const std::int64_t bytes = x.element_bytes();  // of several lanes, perhaps
    if (sizes[2] == 1 && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) {
      return ForElementSize("x", x, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const auto take = sizes[0] < kManyLines ? &TakeElements<T> : &TakePositions<T>;
        return take(static_cast<const T*>(x.raw_data()), sizes, taken, condition.dim(0),
                    out.size() / sizes[0], static_cast<T*>(out.raw_data()));
      });
    }
    Pace pace;
    const auto* from = static_cast<const char*>(x.raw_data());
    auto* to = static_cast<char*>(out.raw_data());
    for (std::int64_t o = 0; o < sizes[0]; ++o) {
      for (std::int64_t i = 0; i < condition.dim(0); ++i) {
        if (!pace.Spend(1)) return Stopped();
        if (taken[i] == 0) continue;
        if (!pace.Copy(to, from + (o * sizes[1] + i) * run, run)) return Stopped();
        to += run;
      }
    }
    return Status();
  }

 private:
  static constexpr std::int64_t kManyLines = 4;

  // Many lines of single elements: the positions that are kept are found once for all.
  template <typename T>
  static Status TakePositions(const T* from, const std::int64_t (&sizes)[3], const std::uint8_t* taken,
                              std::int64_t conditions, std::int64_t kept, T* to) {
    constexpr std::int64_t kAtOnce = 512;
    std::int16_t places[kAtOnce];
    Pace pace;
    std::int64_t found = 0;
    for (std::int64_t first = 0; first < conditions; first += kAtOnce) {
      const std::int64_t some = std::min(kAtOnce, conditions - first);
      std::int64_t count = 0;
      for (std::int64_t i = 0; i < some; ++i) {
        places[count] = static_cast<std::int16_t>(i);
        count += taken[first + i] != 0 ? 1 : 0;
      }
      const bool done = pace.For(sizes[0], kAtOnce, [&](std::int64_t o, std::int64_t end) {
        for (; o < end; ++o) {
          const T* line = from + o * sizes[1] + first;
          T* place = to + o * kept + found;
          for (std::int64_t j = 0; j < count; ++j) place[j] = line[places[j]];
        }
      });
      if (!done) return Stopped();
      found += count;
    }
    return Status();
  }

  // Lines of single elements, of which each leaves `kept`. An element is written before it is known whether
  // it is taken, since a branch would be guessed wrong.
  template <typename T>
  static Status TakeElements(const T* from, const std::int64_t (&sizes)[3], const std::uint8_t* taken,
                             std::int64_t conditions, std::int64_t kept, T* to) {
    Pace pace;
    for (std::int64_t o = 0; o < sizes[0]; ++o, from += sizes[1], to += kept) {
      std::int64_t found = 0;
      const bool done = pace.For(conditions, 1, [&](std::int64_t i, std::int64_t end) {
        std::int64_t place = found;
        for (; i < end && place < kept; ++i) {
          to[place] = from[i];
          place += taken[i] != 0 ? 1 : 0;
        }
        found = place;
      });
      if (!done) return Stopped();
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> FilterKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<NonZero>("x -> out", "x any of at most 8 bytes; out i64", "",
                        "the positions of the elements that are not 0: out[axis, i]"),
      Describe<NonZeroShape>("x -> out", "x any of at most 8 bytes; out i64", "",
                             "the shape of rewire.non_zero's out from x itself"),
      Describe<Compress>(
          "x, condition -> out", "x, out any; condition bool", "axis = none",
          "the slices along the axis (elements of all of x without) where the condition holds"),
      Describe<CompressShape>("x, condition -> out", "x any; condition bool; out i64", "axis = none",
                              "the shape of rewire.compress' out from x and condition themselves"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
