// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic with broadcasting: the output is boolean.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// The operands of most operations stand as they were given, and integers are compared with their sign.
struct AsGiven {
  static constexpr bool kSwaps = false;
  static constexpr bool kIgnoresSign = false;
};

struct Equal : AsGiven {
  using Function = Equal;
  static constexpr const char* kName = names::kEqual;
  static constexpr bool kIgnoresSign = true;
  using Accepts = AllTypes;
  template <typename T>
  std::uint8_t operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual : AsGiven {
  using Function = NotEqual;
  static constexpr const char* kName = names::kNotEqual;
  static constexpr bool kIgnoresSign = true;
  using Accepts = AllTypes;
  template <typename T>
  std::uint8_t operator()(T a, T b) const {
    return a != b;
  }
};
struct Less : AsGiven {
  using Function = Less;
  static constexpr const char* kName = names::kLess;
  using Accepts = AnyNumbers;
  template <typename T>
  std::uint8_t operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual : AsGiven {
  using Function = LessEqual;
  static constexpr const char* kName = names::kLessEqual;
  using Accepts = AnyNumbers;
  template <typename T>
  std::uint8_t operator()(T a, T b) const {
    return a <= b;
  }
};
// a > b is b < a: the loops are those of Function.
struct Greater : Less {
  static constexpr const char* kName = names::kGreater;
  static constexpr bool kSwaps = true;
};
struct GreaterEqual : LessEqual {
  static constexpr const char* kName = names::kGreaterEqual;
  static constexpr bool kSwaps = true;
};
// Logic works on the bytes of booleans, of which all but 0 are true. The smaller one of two bytes needs no
// comparison and no blend.
struct And : AsGiven {
  using Function = And;
  static constexpr const char* kName = names::kAnd;
  using Accepts = Bools;
  static std::uint8_t OfBytes(std::uint8_t a, std::uint8_t b) {
    return std::min(std::min(a, b), std::uint8_t{1});
  }
};
struct Or : AsGiven {
  using Function = Or;
  static constexpr const char* kName = names::kOr;
  using Accepts = Bools;
  static std::uint8_t OfBytes(std::uint8_t a, std::uint8_t b) {
    return std::min(static_cast<std::uint8_t>(a | b), std::uint8_t{1});
  }
};
struct Xor : AsGiven {
  using Function = Xor;
  static constexpr const char* kName = names::kXor;
  using Accepts = Bools;
  static std::uint8_t OfBytes(std::uint8_t a, std::uint8_t b) {
    return std::min(a, std::uint8_t{1}) ^ std::min(b, std::uint8_t{1});
  }
};

// Reads elements as they are stored: comparisons read booleans as truth values.
template <typename Op, typename T>
struct OnStored {
  std::uint8_t operator()(Stored<T> a, Stored<T> b) const {
    if constexpr (std::is_same_v<typename Op::Accepts, Bools>)
      return Op::OfBytes(a, b);
    else
      return Op()(static_cast<Computed<T>>(a), static_cast<Computed<T>>(b));
  }
};

// A repeated element that decides the result, whatever the other operand has: that one is not read.
template <typename Op>
void RunRow(const OnStored<Op, bool> op, std::int64_t count, RowOf<std::uint8_t> out,
            RowOf<const std::uint8_t> a, RowOf<const std::uint8_t> b) {
  const auto decides = [op](RowOf<const std::uint8_t> row) {
    return row.step == 0 && op(*row.data, 0) == op(*row.data, 1);
  };
  if (out.step == 1 && (decides(a) || decides(b)))
    std::fill_n(out.data, count, op(*a.data, *b.data));
  else
    RunRow<OnStored<Op, bool>, std::uint8_t, const std::uint8_t, const std::uint8_t>(op, count, out, a, b);
}

template <typename Op>
struct Comparison {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    Elementwise<2> loop(out, {a, b}, {"a", "b"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("b", b, "a", a); !s.ok()) return s;
    if (!out.Is<bool>()) return WrongDType(Bools(), "out", out);
    if constexpr (Op::kSwaps) loop.Swap();
    return ForType(typename Op::Accepts(), "a", a, [&](auto tag) {
      using Given = typename decltype(tag)::type;
      using T = std::conditional_t<Op::kIgnoresSign, Signless<Given>, Given>;
      if constexpr (std::is_same_v<T, Float16>)
        return loop.Run<std::uint8_t, T, T>(OnHalves<typename Op::Function, std::uint8_t>{});
      else
        return loop.Run<std::uint8_t, Stored<T>, Stored<T>>(OnStored<typename Op::Function, T>());
    });
  }
};

template <typename Op>
constexpr Kernel Row(const char* dtypes, const char* meaning) {
  return Describe<Comparison<Op>>("a, b -> out over a|b", dtypes, "", meaning, kElementwise);
}

constexpr const char kAny[] = "a, b all; out bool";
constexpr const char kOrdered[] = "a, b any number; out bool";

}  // namespace

std::span<const Kernel> ComparisonKernels() {
  static constexpr Kernel kKernels[] = {
      Row<Equal>(kAny, "a == b"),           Row<NotEqual>(kAny, "a != b"),
      Row<Less>(kOrdered, "a < b"),         Row<LessEqual>(kOrdered, "a <= b"),
      Row<Greater>(kOrdered, "a > b"),      Row<GreaterEqual>(kOrdered, "a >= b"),
      Row<And>("bool", "a and b"),          Row<Or>("bool", "a or b"),
      Row<Xor>("bool", "either, not both"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
