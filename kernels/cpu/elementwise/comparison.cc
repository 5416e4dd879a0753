// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic with broadcasting: the output is boolean.
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
struct And : AsGiven {
  using Function = And;
  static constexpr const char* kName = names::kAnd;
  using Accepts = Bools;
  std::uint8_t operator()(bool a, bool b) const { return a && b; }
};
struct Or : AsGiven {
  using Function = Or;
  static constexpr const char* kName = names::kOr;
  using Accepts = Bools;
  std::uint8_t operator()(bool a, bool b) const { return a || b; }
};
struct Xor : AsGiven {
  using Function = Xor;
  static constexpr const char* kName = names::kXor;
  using Accepts = Bools;
  std::uint8_t operator()(bool a, bool b) const { return a != b; }
};

// Reads booleans as truth values before they meet the operation.
template <typename Op, typename T>
struct OnStored {
  std::uint8_t operator()(Stored<T> a, Stored<T> b) const {
    return Op()(static_cast<Computed<T>>(a), static_cast<Computed<T>>(b));
  }
};

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
