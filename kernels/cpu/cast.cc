// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// C++ leaves a float outside the integer's range undefined; here it becomes the nearest value, and NaN
// becomes 0.
template <typename To, typename From>
Stored<To> Convert(Stored<From> x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_same_v<From, bool>) {
    return static_cast<To>(x != 0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The limits as floats: the upper one may round up to a value just out of range, hence >=.
    if (x != x) return 0;
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    if (x >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

struct Cast {
  static constexpr const char kName[] = "rewire.cast";
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    return ForType(AllTypes(), "x", x, [&](auto from) {
      return ForType(AllTypes(), "out", out, [&](auto to) {
        using From = typename decltype(from)::type;
        using To = typename decltype(to)::type;
        loop.Run<Stored<To>, Stored<From>>([](Stored<From> value) { return Convert<To, From>(value); });
        return Status();
      });
    });
  }
};

}  // namespace

std::span<const Kernel> CastKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Cast>(
          "x, out", "f32 f64 i64 i32 i8 u8 bool", "",
          "x in out's dtype: floats are truncated toward zero and held in an integer's range, NaN becomes "
          "0; integers wrap; any non-zero value is true"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
