// SPDX-License-Identifier: Apache-2.0
// Two operands that broadcast: arithmetic, logic, comparisons, and the choice between them.
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/broadcast.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

constexpr ElementTypes kNumbers = kReals | kIntegers;

// The checks of two operands and the result that they broadcast to, and how they do.
Status CheckPair(TensorView a, TensorView b, TensorView out, ElementTypes types, IntegerType* type,
                 Broadcast* shape) {
  if (Status s = CheckOnDevice("out", out); !s.ok()) return s;
  const bool alike = IsDenseLike(a, out) && IsDenseLike(b, out) && SameDType(a.dtype(), b.dtype());
  if (!alike) {
    DeviceChecks checks;
    checks.Beside("a", a, out).Beside("b", b, out).SameDType("b", b, "a", a);
    if (Status s = checks.Take(); !s.ok()) return s;
  }
  if (Status s = ElementTypeOf("a", a, types, type); !s.ok()) return s;
  if (alike) {
    SetFlat(out.size(), shape);
    return Status();
  }
  Dims expected;
  if (Status s = cpu::BroadcastDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
  if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
  *shape = BroadcastOf(out.dims(), {a.dims(), b.dims()});
  return Status();
}

// An output may lie over an operand only element by element: the code reads and writes in no order.
Status CheckOver(TensorView out, const char* name, TensorView operand) {
  if (out.raw_data() != operand.raw_data() || out.dims() == operand.dims()) return Status();
  return ValueError("out lies over ", name, ", which is broadcast");
}

// Arithmetic, logic, and comparisons, which give bools.
template <typename Op, bool kCompares>
struct Binary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    IntegerType type{};
    Broadcast shape;
    if (Status s = CheckPair(a, b, out, Op::kTypes, &type, &shape); !s.ok()) return s;
    if (Status s = CheckResult(a, b, out); !s.ok()) return s;
    const bool real = type == kTypeReal;
    Call call = ElementCall(a, type, Program::kElementwise, kCompares ? "compare" : "binary",
                            kCompares ? "integer_compare" : "integer_binary");
    call.Tensor(a).Tensor(b).Tensor(out).Borrowed(shape);
    if (!real) call.Int(type);
    call.Int(Op::kOperation).Int(out.size());
    return call.Each(out.size());
  }

 private:
  static Status CheckResult(TensorView a, TensorView b, TensorView out) {
    if (kCompares)
      return out.Is<bool>() ? Status() : TypeError("out is ", DTypeName(out.dtype()), ", expected bool");
    if (Status s = cpu::CheckSameDType("out", out, "a", a); !s.ok()) return s;
    if (Status s = CheckOver(out, "a", a); !s.ok()) return s;
    return CheckOver(out, "b", b);
  }
};

#define REWIRE_BINARY(Type, name, code, types)                   \
  struct Type {                                                  \
    static constexpr const char* kName = names::kOnDevice<name>; \
    static constexpr int kOperation = code;                      \
    static constexpr ElementTypes kTypes = types;                \
  };
REWIRE_BINARY(Add, names::kAdd, kAdd, kNumbers)
REWIRE_BINARY(Subtract, names::kSub, kSubtract, kNumbers)
REWIRE_BINARY(Multiply, names::kMul, kMultiply, kNumbers)
REWIRE_BINARY(Divide, names::kDiv, kDivide, kNumbers)
REWIRE_BINARY(Modulo, names::kMod, kModulo, kNumbers)
REWIRE_BINARY(Remainder, names::kFmod, kRemainder, kNumbers)
REWIRE_BINARY(Power, names::kPow, kPower, kNumbers)
REWIRE_BINARY(Maximum, names::kMax, kMaximum, kNumbers)
REWIRE_BINARY(Minimum, names::kMin, kMinimum, kNumbers)
REWIRE_BINARY(AtLeast, names::kAtLeast, kAtLeast, kNumbers)
REWIRE_BINARY(AtMost, names::kAtMost, kAtMost, kNumbers)
REWIRE_BINARY(PRelu, names::kPRelu, kPRelu, kNumbers)
REWIRE_BINARY(BitAnd, names::kBitAnd, kAnd, kIntegers)
REWIRE_BINARY(BitOr, names::kBitOr, kOr, kIntegers)
REWIRE_BINARY(BitXor, names::kBitXor, kXor, kIntegers)
REWIRE_BINARY(And, names::kAnd, kAnd, kBools)
REWIRE_BINARY(Or, names::kOr, kOr, kBools)
REWIRE_BINARY(Xor, names::kXor, kXor, kBools)
REWIRE_BINARY(Equal, names::kEqual, kEqual, kNumbers | kBools)
REWIRE_BINARY(NotEqual, names::kNotEqual, kNotEqual, kNumbers | kBools)
REWIRE_BINARY(Less, names::kLess, kLess, kNumbers)
REWIRE_BINARY(LessOrEqual, names::kLessEqual, kLessOrEqual, kNumbers)
REWIRE_BINARY(Greater, names::kGreater, kGreater, kNumbers)
REWIRE_BINARY(GreaterOrEqual, names::kGreaterEqual, kGreaterOrEqual, kNumbers)
#undef REWIRE_BINARY

struct Where {
  static constexpr const char* kName = names::kOnDevice<names::kWhere>;
  Status operator()(TensorView condition, TensorView a, TensorView b, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("condition", condition, out).Beside("a", a, out).Beside("b", b, out);
    checks.SameDType("b", b, "a", a).SameDType("out", out, "a", a);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!condition.Is<bool>())
      return TypeError("condition is ", DTypeName(condition.dtype()), ", expected bool");
    Dims expected;
    if (Status s = cpu::BroadcastDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = cpu::BroadcastDims(expected.view(), condition.dims(), &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckOver(out, "a", a); !s.ok()) return s;
    if (Status s = CheckOver(out, "b", b); !s.ok()) return s;
    Form form{};
    if (Status s = MoveForm("a", a, &form); !s.ok()) return s;
    const Broadcast shape = BroadcastOf(out.dims(), {a.dims(), b.dims(), condition.dims()});
    Call call(out, Program::kMovement, form, "choose");
    call.Tensor(condition).Tensor(a).Tensor(b).Tensor(out).Value(shape).Int(out.size());
    return call.Each(out.size());
  }
};

constexpr const char kAnyNumber[] = "f32 f16 i64 i32 i16 i8 u16 u8";
constexpr const char kAnyInteger[] = "i64 i32 i16 i8 u16 u8";

template <typename Op>
constexpr Kernel DescribeBinary(const char* dtypes, const char* meaning) {
  return Describe<Binary<Op, false>>("a, b -> out over a|b", dtypes, "", meaning, cpu::kElementwise);
}
template <typename Op>
constexpr Kernel DescribeComparison(const char* dtypes, const char* meaning) {
  return Describe<Binary<Op, true>>("a, b -> out", dtypes, "", meaning, cpu::kElementwise);
}
constexpr const char kOrdered[] = "a, b f32 f16 i64 i32 i16 i8 u16 u8; out bool";
constexpr const char kComparable[] = "a, b f32 f16 i64 i32 i16 i8 u16 u8 bool; out bool";

}  // namespace

std::span<const Kernel> BinaryKernels() {
  static constexpr Kernel kKernels[] = {
      DescribeBinary<Add>(kAnyNumber, "a + b; integers wrap"),
      DescribeBinary<Subtract>(kAnyNumber, "a - b; integers wrap"),
      DescribeBinary<Multiply>(kAnyNumber, "a * b; integers wrap"),
      DescribeBinary<Divide>(kAnyNumber, "a / b; integers are truncated toward zero, and x / 0 is 0"),
      DescribeBinary<Modulo>(kAnyNumber, "a - floor(a / b) * b, with b's sign; for integers x mod 0 is 0"),
      DescribeBinary<Remainder>(kAnyNumber, "a - trunc(a / b) * b, with a's sign; for integers x mod 0 is 0"),
      DescribeBinary<Power>(kAnyNumber,
                            "a to the power b; integers wrap, a negative exponent truncates toward zero"),
      DescribeBinary<Maximum>(kAnyNumber, "the larger, NaN if one is"),
      DescribeBinary<Minimum>(kAnyNumber, "the smaller, NaN if one is"),
      DescribeBinary<AtLeast>(kAnyNumber, "b where a is below it, else a: also if either is NaN"),
      DescribeBinary<AtMost>(kAnyNumber, "b where a is above it, else a: also if either is NaN"),
      DescribeBinary<PRelu>(kAnyNumber, "a, or a * b below 0"),
      DescribeBinary<BitAnd>(kAnyInteger, "a and b, bit by bit"),
      DescribeBinary<BitOr>(kAnyInteger, "a or b, bit by bit"),
      DescribeBinary<BitXor>(kAnyInteger, "either, not both, bit by bit"),
      DescribeBinary<And>("bool", "a and b"),
      DescribeBinary<Or>("bool", "a or b"),
      DescribeBinary<Xor>("bool", "either, not both"),
      DescribeComparison<Equal>(kComparable, "a == b"),
      DescribeComparison<NotEqual>(kComparable, "a != b"),
      DescribeComparison<Less>(kOrdered, "a < b"),
      DescribeComparison<LessOrEqual>(kOrdered, "a <= b"),
      DescribeComparison<Greater>(kOrdered, "a > b"),
      DescribeComparison<GreaterOrEqual>(kOrdered, "a >= b"),
      Describe<Where>("condition, a, b -> out over a|b", "condition bool; a, b, out any of at most 8 bytes",
                      "", "a where the condition holds, else b; all three broadcast", cpu::kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
