// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/math/halves.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"

namespace rewire::kernel::cpu {
namespace {

struct Cast {
  static constexpr const char* kName = names::kCast;
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (out.Is<bool>()) return From(loop, x, Tag<bool>());
    return ForType(AnyNumbers(), "out", out, [&](auto tag) { return From(loop, x, tag); });
  }

 private:
  template <typename To>
  static Status From(const Elementwise<1>& loop, TensorView x, Tag<To>) {
    return ForType(AllTypes(), "x", x, [&](auto tag) {
      using Source = typename decltype(tag)::type;
      if constexpr (std::is_same_v<Source, Float16> && std::is_same_v<To, float>)
        return loop.RunRows<To, Source>(BestHalfRows().widen);
      if constexpr (std::is_same_v<Source, float> && std::is_same_v<To, Float16>)
        return loop.RunRows<To, Source>(BestHalfRows().narrow);
      // From an integer the sign of the target does not matter: both wrap to the same bits.
      using Target = std::conditional_t<std::is_integral_v<Source>, Signless<To>, To>;
      if constexpr (std::is_same_v<Source, Float16> && !std::is_same_v<To, Float16>) {
        const auto convert = [](float value) { return ToType<To>(value); };
        return loop.Run<Stored<To>, Source>(OnHalves<decltype(convert), Stored<To>>{convert});
      }
      if constexpr (std::is_same_v<Source, float> && std::is_same_v<To, std::int64_t>)
        return loop.RunRows<To, Source>(ToLongs);
      if constexpr (std::is_same_v<To, Float16> && !std::is_same_v<Source, Float16>)
        return loop.RunRows<To, Stored<Source>>(ToHalves<Source>);
      return loop.Run<Stored<Target>, Stored<Source>>([](Stored<Source> value) {
        if constexpr (std::is_same_v<Source, bool>)
          return value != 0 ? Stored<Target>(1) : Stored<Target>(0);
        else
          return ToType<Target>(value);
      });
    });
  }

  // Vectors convert to 32 bits, which hold most numbers of models: a block that has others goes one by one.
  static void ToLongs(const float* in, std::int64_t* out, std::int64_t count) {
    for (std::int64_t at = 0; at < count; at += kHalfBlock) {
      const std::int64_t size = std::min(kHalfBlock, count - at);
      int outside = 0;
      WideLoop([from = in + at, size, &outside] {
        int some = 0;
        for (std::int64_t i = 0; i < size; ++i) some |= std::abs(from[i]) < 0x1p31F ? 0 : 1;  // NaN is 1
        outside = some;
      });
      if (outside == 0)
        RunContiguous([](float x) { return std::int64_t{ToTypeInRange<std::int32_t>(x)}; }, size, out + at,
                      in + at);
      else
        RunContiguous([](float x) { return ToType<std::int64_t>(x); }, size, out + at, in + at);
    }
  }

  // By way of f32, in blocks that the CPU converts at once.
  template <typename Source>
  static void ToHalves(const Stored<Source>* in, Float16* out, std::int64_t count) {
    float block[kHalfBlock];
    for (std::int64_t at = 0; at < count; at += kHalfBlock) {
      const std::int64_t size = std::min(kHalfBlock, count - at);
      RunContiguous(
          [](Stored<Source> value) {
            if constexpr (std::is_same_v<Source, bool>)
              return value != 0 ? 1.0F : 0.0F;
            else
              return static_cast<float>(value);
          },
          size, static_cast<float*>(block), in + at);
      BestHalfRows().narrow(block, out + at, size);
    }
  }
};

}  // namespace

std::span<const Kernel> CastKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Cast>(
          "x -> out over x", "all", "",
          "x in out's dtype: floats are truncated toward zero and held in an integer's range, NaN becomes "
          "0; integers wrap; any non-zero value is true",
          kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
