// SPDX-License-Identifier: Apache-2.0
//
// These kernels prepare keys and queries for attention: they write new keys into a cache, and
// rotate vectors by their positions.
#include <algorithm>
#include <optional>

#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

// Integers of which there is one for all of the batch, or one for each.
Status CheckOfBatch(const char* name, TensorView counts, std::int64_t batch, TensorView out) {
  Checks checks;
  if (Status s = checks.Dense(name, counts).NoOverlap("out", out, name, counts).Take(); !s.ok()) return s;
  if (!counts.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), name, counts);
  if (counts.size() == 1 || (counts.ndim() == 1 && counts.dim(0) == batch)) return Status();
  return ValueError(name, " has shape ", counts.dims(), ", expected one element or [", batch, "]");
}

struct AppendToCache {
  static constexpr const char* kName = names::kCacheAppend;
  Status operator()(TensorView cache, TensorView x, TensorView begin, TensorView out) const {
    Checks checks;
    checks.Dense("cache", cache).Rank("cache", cache, 4).Dense("x", x).Dense("out", out);
    checks.Shape("out", out, cache.dims()).SameDType("x", x, "cache", cache);
    checks.SameDType("out", out, "cache", cache).NoOverlap("out", out, "x", x);
    const bool in_place = out.raw_data() == cache.raw_data();
    if (!in_place) checks.NoOverlap("out", out, "cache", cache);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckOfBatch("begin", begin, cache.dim(0), out); !s.ok()) return s;
    const std::int64_t batch = cache.dim(0), heads = cache.dim(1), size = cache.dim(3);
    const bool joined = x.ndim() == 3;
    if (!joined && x.ndim() != 4) return ValueError("x has shape ", x.dims(), ", expected rank 3 or 4");
    const std::int64_t length = x.dim(joined ? 1 : 2);
    const std::int64_t apart[] = {batch, heads, length, size},
                       together[] = {batch, length, Times(heads, size)};
    if (Status s = CheckShape("x", x, joined ? ShapeView(together, 3) : ShapeView(apart, 4)); !s.ok())
      return s;
    const std::int64_t step = begin.size() == 1 ? 0 : 1;
    for (std::int64_t b = 0; b < (step == 0 ? 1 : batch); ++b) {
      const std::int64_t first = begin.data<std::int64_t>()[b];
      if (first >= 0 && first <= cache.dim(2) - length) continue;
      return ValueError("the cache has room for ", cache.dim(2), " positions, got ", length,
                        " new ones from ", first, " on; cache has shape ", cache.dims());
    }
    const std::int64_t bytes = Times(size, cache.element_bytes());
    if (!in_place) {
      if (Status s = CopyAll(out.raw_data(), cache.raw_data(), Times(cache.size(), cache.element_bytes()));
          !s.ok())
        return s;
    }
    const auto* from = static_cast<const char*>(x.raw_data());
    auto* to = static_cast<char*>(out.raw_data());
    return SerialFor(Times(batch, heads, length), 4 + bytes / 16, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        const std::int64_t b = i / (heads * length), head = i / length % heads, place = i % length;
        const std::int64_t at = begin.data<std::int64_t>()[b * step] + place;
        const std::int64_t row = joined ? (b * length + place) * heads + head : i;
        std::copy_n(from + row * bytes, bytes, to + ((b * heads + head) * cache.dim(2) + at) * bytes);
      }
    });
  }
};

struct Rotary {
  static constexpr const char* kName = names::kRotary;
  std::int64_t heads = 0;
  bool interleaved = false;
  static Status Make(Attributes& attributes, Rotary* rotary) {
    rotary->heads = attributes.Int("heads", 0, 0, std::int64_t{1} << 31);
    rotary->interleaved = attributes.Bool("interleaved", false);
    return Status();
  }

  Status operator()(TensorView x, TensorView cosines, TensorView sines, std::optional<TensorView> positions,
                    TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).SameDType("out", out, "x", x);
    checks.Dense("cosines", cosines)
        .SameDType("cosines", cosines, "x", x)
        .NoOverlap("out", out, "cosines", cosines);
    checks.Dense("sines", sines).SameDType("sines", sines, "x", x).NoOverlap("out", out, "sines", sines);
    checks.Shape("sines", sines, cosines.dims());
    if (out.raw_data() != x.raw_data()) checks.NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return WrongDType(Types<float>(), "x", x);
    const bool joined = x.ndim() == 3;
    if (!joined && x.ndim() != 4) return ValueError("x has shape ", x.dims(), ", expected rank 3 or 4");
    const std::int64_t count = joined ? heads : x.dim(1), length = x.dim(joined ? 1 : 2);
    if (joined && (heads < 1 || x.dim(2) % heads != 0))
      return ValueError("x has shape ", x.dims(), ", which ", heads, " heads do not divide");
    const std::int64_t size = joined ? x.dim(2) / heads : x.dim(3), places = Times(x.dim(0), length);
    if (Status s = CheckTables(x.dim(0), length, size, cosines, positions, out); !s.ok()) return s;
    const std::int64_t half = cosines.dim(cosines.ndim() - 1), rows = cosines.dim(0);
    const auto* chosen = IsGiven(positions) ? positions->data<std::int64_t>() : nullptr;
    if (chosen != nullptr) {
      for (std::int64_t i = 0; i < places; ++i) {
        if (chosen[i] < 0 || chosen[i] >= rows)
          return ValueError("positions has ", chosen[i], ", expected 0 to ", rows - 1);
      }
    }
    return ParallelFor(
        Times(places, count), GrainOf(kGrain, size, 2), [&](std::int64_t i, std::int64_t end, Pace& pace) {
          for (; i < end; ++i) {
            if (!pace.Spend(8 + size)) return;
            const std::int64_t place = joined ? i / count : i / (count * length) * length + i % length;
            const std::int64_t at = (chosen != nullptr ? chosen[place] : place) * half;
            Turn(x.data<float>() + i * size, cosines.data<float>() + at, sines.data<float>() + at, half, size,
                 out.data<float>() + i * size);
          }
        });
  }

 private:
  static Status CheckTables(std::int64_t batch, std::int64_t length, std::int64_t size, TensorView cosines,
                            const std::optional<TensorView>& positions, TensorView out) {
    const bool chosen = IsGiven(positions);
    const bool fits = chosen ? cosines.ndim() == 2
                             : cosines.ndim() == 3 && cosines.dim(0) == batch && cosines.dim(1) == length;
    if (!fits && out.size() != 0)
      return ValueError("cosines has shape ", cosines.dims(), ", expected ",
                        chosen ? "[positions, half]" : "[B, L, half]");
    if (cosines.ndim() < 1 || cosines.dim(cosines.ndim() - 1) > size / 2)
      return ValueError("cosines has shape ", cosines.dims(), ", expected at most half of ", size,
                        " as the last dimension");
    if (!chosen) return Status();
    const std::int64_t expected[] = {batch, length};
    Checks checks;
    checks.Dense("positions", *positions).Shape("positions", *positions, ShapeView(expected, 2));
    if (Status s = checks.NoOverlap("out", out, "positions", *positions).Take(); !s.ok()) return s;
    if (!positions->Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "positions", *positions);
    return Status();
  }

  // `out` may be `x`.
  void Turn(const float* x, const float* cosines, const float* sines, std::int64_t half, std::int64_t size,
            float* out) const {
    WideLoop([=, neighbors = interleaved] {
      // Distances that the compiler knows make vectors.
      if (neighbors)
        TurnPairs<2>(x, x + 1, cosines, sines, half, out, out + 1);
      else
        TurnPairs<1>(x, x + half, cosines, sines, half, out, out + half);
    });
    if (out != x) std::copy(x + 2 * half, x + size, out + 2 * half);
  }
  template <int kStep>
  static void TurnPairs(const float* first, const float* second, const float* cosines, const float* sines,
                        std::int64_t half, float* to_first, float* to_second) {
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = first[i * kStep], b = second[i * kStep];
      to_first[i * kStep] = a * cosines[i] - b * sines[i];
      to_second[i * kStep] = a * sines[i] + b * cosines[i];
    }
  }
};

}  // namespace

std::span<const Kernel> CacheKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<AppendToCache>("cache, x, begin -> out over cache", "cache, x, out any; begin i64", "",
                              "cache [B, H, S, D] with x [B, H, L, D] or [B, L, H * D] written over the "
                              "positions from begin on, one "
                              "number or [B]. In place it writes these positions alone"),
      Describe<Rotary>("x, cosines, sines, positions? -> out over x",
                       "x, cosines, sines, out f32; positions i64",
                       "heads = 0 (needed for rank 3), interleaved = 0",
                       "x [B, H, L, D] or [B, L, heads * D] with the first 2 * half elements of each vector "
                       "rotated in pairs, "
                       "of both halves, or of neighbors if interleaved. The tables are [positions, half] "
                       "with positions [B, "
                       "L], or [B, L, half]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
