// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
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
      return loop.Run<Stored<Target>, Stored<Source>>([](Stored<Source> value) {
        if constexpr (std::is_same_v<Source, bool>)
          return ToType<Target>(static_cast<std::uint8_t>(value != 0));
        else
          return ToType<Target>(value);
      });
    });
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
