// SPDX-License-Identifier: Apache-2.0
// Kinds of floats: the output is boolean.
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/elementwise_attributes.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

// The bits of a float of type T.
template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
template <typename T>
constexpr BitsOf<T> kSignBit = static_cast<BitsOf<T>>(BitsOf<T>{1} << (8 * sizeof(T) - 1));
template <typename T>
constexpr BitsOf<T> kInfinityBits = static_cast<BitsOf<T>>(std::is_same_v<T, Float16>    ? 0x7C00U
                                                           : std::is_same_v<T, BFloat16> ? 0x7F80U
                                                           : std::is_same_v<T, float>    ? 0x7F800000U
                                                                                      : 0x7FF0000000000000U);

// predicate(Tag<T>(), bits) says whether a float of type T is of the kind.
template <typename Predicate>
Status Classify(TensorView x, TensorView out, const Predicate& predicate) {
  Elementwise<1> loop(out, {x}, {"x"});
  if (Status s = loop.Check(); !s.ok()) return s;
  if (!out.Is<bool>()) return WrongDType(Bools(), "out", out);
  return ForType(AnyFloats(), "x", x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Floats of 16 bits are no type of the CPU's. Loops over their bits become vectors.
    return loop.Run<std::uint8_t, BitsOf<T>>(
        [=](BitsOf<T> bits) -> std::uint8_t { return predicate(tag, bits); });
  });
}

struct IsNaN {
  static constexpr const char* kName = names::kIsNan;
  Status operator()(TensorView x, TensorView out) const {
    return Classify(x, out, [](auto tag, auto bits) {
      using T = typename decltype(tag)::type;
      return static_cast<BitsOf<T>>(bits & ~kSignBit<T>) > kInfinityBits<T>;
    });
  }
};

struct IsInf : WithAttributes<contract::IsInfAttributes> {
  static constexpr const char* kName = names::kIsInf;
  Status operator()(TensorView x, TensorView out) const {
    if (!positive && !negative)  // x need not be read
      return Classify(x, out, [](auto, auto) { return false; });
    return Classify(x, out, [above = positive, below = negative](auto tag, auto bits) {
      using T = typename decltype(tag)::type;
      const bool is_positive = bits == kInfinityBits<T>;
      const bool is_negative = bits == static_cast<BitsOf<T>>(kInfinityBits<T> | kSignBit<T>);
      return (is_positive & above) | (is_negative & below);
    });
  }
};

}  // namespace

std::span<const Kernel> ClassifyKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<IsNaN>("x -> out over x", "x any float; out bool", "", "whether x is NaN", kElementwise),
      Describe<IsInf>("x -> out over x", "x any float; out bool", "detect_positive = 1, detect_negative = 1",
                      "whether x is infinite, of the signs asked for", kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
