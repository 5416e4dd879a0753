// SPDX-License-Identifier: Apache-2.0
// Integers as patterns of bits, with broadcasting.
#include <algorithm>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// out = op(a, b) on the bits of integers of one type, without their sign where that is of no matter.
template <bool kSigned = false, typename Op>
Status OnBits(TensorView a, TensorView b, TensorView out, const Op& op) {
  Elementwise<2> loop(out, {a, b}, {"a", "b"});
  if (Status s = loop.Check(); !s.ok()) return s;
  if (Status s = Checks().SameDType("b", b, "a", a).SameDType("out", out, "a", a).Take(); !s.ok()) return s;
  return ForType(Integers(), "a", a, [&](auto tag) {
    using Given = typename decltype(tag)::type;
    using T = std::conditional_t<kSigned, Given, Signless<Given>>;
    return loop.Run<T, T, T>([&](T x, T y) { return static_cast<T>(op(x, y)); });
  });
}

struct BitAnd {
  static constexpr const char* kName = names::kBitAnd;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [](auto x, auto y) { return x & y; });
  }
};

struct BitOr {
  static constexpr const char* kName = names::kBitOr;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [](auto x, auto y) { return x | y; });
  }
};

struct BitXor {
  static constexpr const char* kName = names::kBitXor;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [](auto x, auto y) { return x ^ y; });
  }
};

// Bytes moved by up to 7 places of `move`, of which each of the three bits of the number does a part: vectors
// have no shifts of bytes by a number of places each.
template <typename T, typename Move>
T MoveByte(T x, T places, const Move& move) {
  x = (places & 1) != 0 ? move(x, 1) : x;
  x = (places & 2) != 0 ? move(x, 2) : x;
  return (places & 4) != 0 ? move(x, 4) : x;
}

struct BitShift {
  static constexpr const char* kName = names::kBitShift;
  bool left = true;
  static Status Make(Attributes& attributes, BitShift* shift) {
    attributes.Require("direction");
    shift->left = attributes.Choice("direction", {"LEFT", "RIGHT"}, 0) == 0;
    return Status();
  }
  // Shifting by the width or more, which C++ leaves open, moves every bit out. A negative number of places
  // counts as such.
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    if (left) {
      return OnBits(a, b, out, [](auto x, auto y) {
        using T = decltype(x);
        if constexpr (sizeof(T) == 1) {
          const T moved = MoveByte(x, y, [](T byte, int by) { return static_cast<T>(byte << by); });
          return static_cast<T>(y > 7 ? 0 : moved);
        } else {
          return y >= 8 * sizeof(x) ? std::uint64_t{0} : static_cast<std::uint64_t>(x) << y;
        }
      });
    }
    return OnBits<true>(a, b, out, [](auto x, auto y) {
      using T = decltype(x);
      if constexpr (sizeof(T) == 1) {
        const T moved = MoveByte(x, y, [](T byte, int by) { return static_cast<T>(byte >> by); });
        // Only the sign of a signed number is left then.
        const bool stays = static_cast<std::make_unsigned_t<T>>(y) <= 7;
        return static_cast<T>(stays ? moved : static_cast<T>(x < 0 ? -1 : 0));
      } else {
        constexpr auto kBits = static_cast<std::uint64_t>(8 * sizeof(T));
        const auto places = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(y));
        // Only the sign of a signed number is left then.
        return static_cast<T>(x >> std::min(places, kBits - 1)) &
               static_cast<T>(places < kBits || x < 0 ? -1 : 0);
      }
    });
  }
};

}  // namespace

std::span<const Kernel> BitwiseKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<BitAnd>("a, b -> out over a|b", "any integer", "", "bits that both have", kElementwise),
      Describe<BitOr>("a, b -> out over a|b", "any integer", "", "bits that one has", kElementwise),
      Describe<BitXor>("a, b -> out over a|b", "any integer", "", "bits that one alone has", kElementwise),
      Describe<BitShift>(
          "a, b -> out over a|b", "any integer", "direction, LEFT or RIGHT",
          "a's bits moved by b places; zeros come in, from the left of a signed type copies of its sign",
          kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
