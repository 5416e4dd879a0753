// SPDX-License-Identifier: Apache-2.0
// Integers as patterns of bits, with broadcasting.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// out = op(a, b) on the bits of integers of one type.
template <typename Op>
Status OnBits(TensorView a, TensorView b, TensorView out, const Op& op) {
  Elementwise<2> loop(out, {a, b}, {"a", "b"});
  if (Status s = loop.Check(); !s.ok()) return s;
  if (Status s = Checks().SameDType("b", b, "a", a).SameDType("out", out, "a", a).Take(); !s.ok()) return s;
  return ForType(Integers(), "a", a, [&](auto tag) {
    using T = Signless<typename decltype(tag)::type>;
    loop.Run<T, T, T>([&](T x, T y) { return static_cast<T>(op(x, y)); });
    return Status();
  });
}

struct BitAnd {
  static constexpr const char kName[] = "rewire.bit_and";
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [](auto x, auto y) { return x & y; });
  }
};

struct BitOr {
  static constexpr const char kName[] = "rewire.bit_or";
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [](auto x, auto y) { return x | y; });
  }
};

struct BitXor {
  static constexpr const char kName[] = "rewire.bit_xor";
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [](auto x, auto y) { return x ^ y; });
  }
};

struct BitShift {
  static constexpr const char kName[] = "rewire.bit_shift";
  bool left = true;
  static Status Make(Attributes& attributes, BitShift* shift) {
    attributes.Require("direction");
    shift->left = attributes.Choice("direction", {"LEFT", "RIGHT"}, 0) == 0;
    return Status();
  }
  // Shifting by the width or more, which C++ leaves open, moves every bit out.
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    return OnBits(a, b, out, [this](auto x, auto y) {
      const auto wide = static_cast<std::uint64_t>(x);
      if (y >= 8 * sizeof(x)) return std::uint64_t{0};
      return left ? wide << y : wide >> y;
    });
  }
};

}  // namespace

std::span<const Kernel> BitwiseKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<BitAnd>("a, b, out", "any integer", "", "bits that both have"),
      Describe<BitOr>("a, b, out", "any integer", "", "bits that one has"),
      Describe<BitXor>("a, b, out", "any integer", "", "bits that one alone has"),
      Describe<BitShift>("a, b, out", "any integer", "direction, LEFT or RIGHT",
                         "a's bits moved by b places; zeros come in, also for signed types"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
