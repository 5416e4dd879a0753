// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels with broadcasting, and casts.
#include <limits>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/broadcast.h"
#include "rewire/kernels/device/device_call.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// An operation of one operand with up to two parameters. `Op` reads them from its attributes.
template <typename Op>
struct Unary {
  static constexpr const char* kName = Op::kName;
  float p = 0;
  float q = 0;
  int operation = Op::kOperation;
  static Status Make(Attributes& attributes, Unary* unary) {
    if constexpr (requires { Op::Read(attributes, unary); }) Op::Read(attributes, unary);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Real("x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Shape("out", out, x.dims()).Take(); !s.ok()) return s;
    Call call(out, Program::kElementwise, RealForm(x), "unary");
    call.Tensor(x).Tensor(out).Int(operation).Value(p).Value(q).Int(out.size());
    return call.Each(out.size());
  }
};

#define REWIRE_UNARY(Type, name, code)                           \
  struct Type {                                                  \
    static constexpr const char kName[] = "rewire.device." name; \
    static constexpr int kOperation = code;                      \
  };
REWIRE_UNARY(Abs, "abs", kAbs)
REWIRE_UNARY(Ceil, "ceil", kCeil)
REWIRE_UNARY(Cos, "cos", kCos)
REWIRE_UNARY(Erf, "erf", kErf)
REWIRE_UNARY(Exp, "exp", kExp)
REWIRE_UNARY(Floor, "floor", kFloor)
REWIRE_UNARY(HardSwish, "hard_swish", kHardSwish)
REWIRE_UNARY(Log, "log", kLog)
REWIRE_UNARY(Neg, "neg", kNegate)
REWIRE_UNARY(Reciprocal, "reciprocal", kReciprocal)
REWIRE_UNARY(Relu, "relu", kRelu)
REWIRE_UNARY(Round, "round", kRound)
REWIRE_UNARY(Sigmoid, "sigmoid", kSigmoid)
REWIRE_UNARY(Sign, "sign", kSign)
REWIRE_UNARY(Sin, "sin", kSin)
REWIRE_UNARY(Softplus, "softplus", kSoftplus)
REWIRE_UNARY(Sqrt, "sqrt", kSqrt)
REWIRE_UNARY(Swish, "swish", kSwish)
REWIRE_UNARY(Tanh, "tanh", kTanh)
#undef REWIRE_UNARY

struct LeakyRelu {
  static constexpr const char kName[] = "rewire.device.leaky_relu";
  static constexpr int kOperation = kLeakyRelu;
  static void Read(Attributes& attributes, Unary<LeakyRelu>* unary) {
    unary->p = static_cast<float>(attributes.Float("alpha", 0.01));
  }
};
struct Elu {
  static constexpr const char kName[] = "rewire.device.elu";
  static constexpr int kOperation = kElu;
  static void Read(Attributes& attributes, Unary<Elu>* unary) {
    unary->p = static_cast<float>(attributes.Float("alpha", 1));
  }
};
struct Selu {
  static constexpr const char kName[] = "rewire.device.selu";
  static constexpr int kOperation = kSelu;
  static void Read(Attributes& attributes, Unary<Selu>* unary) {
    unary->p = static_cast<float>(attributes.Float("alpha", 1.67326319217681884765625));
    unary->q = static_cast<float>(attributes.Float("gamma", 1.05070102214813232421875));
  }
};
struct Gelu {
  static constexpr const char kName[] = "rewire.device.gelu";
  static constexpr int kOperation = kGelu;
  static void Read(Attributes& attributes, Unary<Gelu>* unary) {
    if (attributes.Choice("approximate", {"none", "tanh"}, 0) == 1) unary->operation = kGeluTanh;
  }
};
struct HardSigmoid {
  static constexpr const char kName[] = "rewire.device.hard_sigmoid";
  static constexpr int kOperation = kHardSigmoid;
  static void Read(Attributes& attributes, Unary<HardSigmoid>* unary) {
    unary->p = static_cast<float>(attributes.Float("alpha", 0.2));
    unary->q = static_cast<float>(attributes.Float("beta", 0.5));
  }
};
struct Clip {
  static constexpr const char kName[] = "rewire.device.clip";
  static constexpr int kOperation = kClip;
  static void Read(Attributes& attributes, Unary<Clip>* unary) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    unary->p = static_cast<float>(attributes.Float("min", -kInfinity));
    unary->q = static_cast<float>(attributes.Float("max", kInfinity));
  }
};

// The checks of two operands and the result that they broadcast to.
Status CheckPair(TensorView a, TensorView b, TensorView out) {
  DeviceChecks checks;
  checks.On("out", out).Beside("a", a, out).Beside("b", b, out).Real("a", a).SameDType("b", b, "a", a);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (a.dims() == b.dims() && a.dims() == out.dims()) return Status();  // the usual case
  Dims expected;
  if (Status s = cpu::BroadcastDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
  return cpu::CheckShape("out", out, expected.view());
}

// An output may lie over an operand only element by element: the code reads and writes in no order.
Status CheckOver(TensorView out, const char* name, TensorView operand) {
  if (out.raw_data() != operand.raw_data() || out.dims() == operand.dims()) return Status();
  return ValueError("out lies over ", name, ", which is broadcast");
}

template <typename Op>
struct Binary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    if (Status s = CheckPair(a, b, out); !s.ok()) return s;
    if (Status s = cpu::CheckSameDType("out", out, "a", a); !s.ok()) return s;
    if (Status s = CheckOver(out, "a", a); !s.ok()) return s;
    if (Status s = CheckOver(out, "b", b); !s.ok()) return s;
    const Broadcast shape = BroadcastOf(out.dims(), {a.dims(), b.dims()});
    Call call(out, Program::kElementwise, RealForm(a), "binary");
    call.Tensor(a).Tensor(b).Tensor(out).Value(shape).Int(Op::kOperation).Int(out.size());
    return call.Each(out.size());
  }
};

#define REWIRE_BINARY(Type, name, code)                          \
  struct Type {                                                  \
    static constexpr const char kName[] = "rewire.device." name; \
    static constexpr int kOperation = code;                      \
  };
REWIRE_BINARY(Add, "add", kAdd)
REWIRE_BINARY(Subtract, "sub", kSubtract)
REWIRE_BINARY(Multiply, "mul", kMultiply)
REWIRE_BINARY(Divide, "div", kDivide)
REWIRE_BINARY(Power, "pow", kPower)
REWIRE_BINARY(Maximum, "max", kMaximum)
REWIRE_BINARY(Minimum, "min", kMinimum)
REWIRE_BINARY(PRelu, "prelu", kPRelu)
REWIRE_BINARY(Equal, "equal", kEqual)
REWIRE_BINARY(Less, "less", kLess)
REWIRE_BINARY(LessOrEqual, "less_equal", kLessOrEqual)
REWIRE_BINARY(Greater, "greater", kGreater)
REWIRE_BINARY(GreaterOrEqual, "greater_equal", kGreaterOrEqual)
#undef REWIRE_BINARY

template <typename Op>
struct Compare {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    if (Status s = CheckPair(a, b, out); !s.ok()) return s;
    if (!out.Is<bool>()) return TypeError("out is ", DTypeName(out.dtype()), ", expected bool");
    const Broadcast shape = BroadcastOf(out.dims(), {a.dims(), b.dims()});
    Call call(out, Program::kElementwise, RealForm(a), "compare");
    call.Tensor(a).Tensor(b).Tensor(out).Value(shape).Int(Op::kOperation).Int(out.size());
    return call.Each(out.size());
  }
};

struct Where {
  static constexpr const char kName[] = "rewire.device.where";
  Status operator()(TensorView condition, TensorView a, TensorView b, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("condition", condition, out).Beside("a", a, out).Beside("b", b, out);
    checks.Real("a", a).SameDType("b", b, "a", a).SameDType("out", out, "a", a);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!condition.Is<bool>())
      return TypeError("condition is ", DTypeName(condition.dtype()), ", expected bool");
    Dims expected;
    if (Status s = cpu::BroadcastDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = cpu::BroadcastDims(expected.view(), condition.dims(), &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckOver(out, "a", a); !s.ok()) return s;
    if (Status s = CheckOver(out, "b", b); !s.ok()) return s;
    const Broadcast shape = BroadcastOf(out.dims(), {a.dims(), b.dims(), condition.dims()});
    Call call(out, Program::kElementwise, RealForm(a), "choose");
    call.Tensor(condition).Tensor(a).Tensor(b).Tensor(out).Value(shape).Int(out.size());
    return call.Each(out.size());
  }
};

struct Cast {
  static constexpr const char kName[] = "rewire.device.cast";
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    const bool from_real = x.dtype().code == kDLFloat;
    const bool to_real = out.dtype().code == kDLFloat;
    // Between two sizes of real numbers, the code's own is the smaller one.
    const bool from_half = from_real && x.dtype().bits == 16;
    const TensorView real = from_real && (from_half || !to_real) ? x : out;
    if (Status s = DeviceChecks().Real(from_real ? "x" : "out", real).Take(); !s.ok()) return s;
    const char* code = from_real && to_real ? (from_half ? "real_to_f32" : "f32_to_real")
                       : from_real          ? FromReal(out)
                                            : ToReal(x);
    if (code == nullptr || (from_half && to_real && out.dtype().bits == 16)) {
      return TypeError("no cast from ", DTypeName(x.dtype()), " to ", DTypeName(out.dtype()), " on a device");
    }
    Call call(out, Program::kElementwise, RealForm(real), code);
    call.Tensor(x).Tensor(out).Int(out.size());
    return call.Each(out.size());
  }

 private:
  static const char* FromReal(TensorView out) {
    if (out.Is<std::int64_t>()) return "real_to_i64";
    if (out.Is<std::int32_t>()) return "real_to_i32";
    if (out.Is<bool>()) return "real_to_bool";
    return out.Is<std::uint8_t>() ? "real_to_u8" : nullptr;
  }
  static const char* ToReal(TensorView x) {
    if (x.Is<std::int64_t>()) return "i64_to_real";
    if (x.Is<std::int32_t>()) return "i32_to_real";
    return x.Is<bool>() || x.Is<std::uint8_t>() ? "u8_to_real" : nullptr;
  }
};

template <typename Op>
constexpr Kernel DescribeUnary(const char* attributes, const char* meaning) {
  return Describe<Unary<Op>>("x -> out over x", "f32 f16", attributes, meaning, cpu::kElementwise);
}
template <typename Op>
constexpr Kernel DescribeBinary(const char* meaning) {
  return Describe<Binary<Op>>("a, b -> out over a|b", "f32 f16", "", meaning, cpu::kElementwise);
}
template <typename Op>
constexpr Kernel DescribeComparison(const char* meaning) {
  return Describe<Compare<Op>>("a, b -> out", "a, b f32 f16; out bool", "", meaning, cpu::kElementwise);
}

}  // namespace

std::span<const Kernel> ElementwiseKernels() {
  static constexpr Kernel kKernels[] = {
      DescribeBinary<Add>("a + b"),
      DescribeBinary<Subtract>("a - b"),
      DescribeBinary<Multiply>("a * b"),
      DescribeBinary<Divide>("a / b"),
      DescribeBinary<Power>("a to the power b"),
      DescribeBinary<Maximum>("the larger, NaN if one is"),
      DescribeBinary<Minimum>("the smaller, NaN if one is"),
      DescribeBinary<PRelu>("a, or a * b below 0"),
      DescribeComparison<Equal>("a == b"),
      DescribeComparison<Less>("a < b"),
      DescribeComparison<LessOrEqual>("a <= b"),
      DescribeComparison<Greater>("a > b"),
      DescribeComparison<GreaterOrEqual>("a >= b"),
      DescribeUnary<Abs>("", "absolute value"),
      DescribeUnary<Ceil>("", "rounded up"),
      DescribeUnary<Cos>("", "cosine"),
      DescribeUnary<Erf>("", "error function"),
      DescribeUnary<Exp>("", "e to the power x"),
      DescribeUnary<Floor>("", "rounded down"),
      DescribeUnary<Log>("", "natural logarithm"),
      DescribeUnary<Neg>("", "-x"),
      DescribeUnary<Reciprocal>("", "1 / x"),
      DescribeUnary<Round>("", "rounded to the nearest integer, halves to even"),
      DescribeUnary<Sign>("", "-1, 0 or 1"),
      DescribeUnary<Sin>("", "sine"),
      DescribeUnary<Sqrt>("", "square root"),
      DescribeUnary<Relu>("", "max(x, 0); NaN stays"),
      DescribeUnary<Sigmoid>("", "1 / (1 + exp(-x))"),
      DescribeUnary<Tanh>("", "hyperbolic tangent"),
      DescribeUnary<Softplus>("", "log(1 + exp(x))"),
      DescribeUnary<Swish>("", "x / (1 + exp(-x))"),
      DescribeUnary<HardSwish>("", "x * (x / 6 + 0.5 held in [0, 1])"),
      DescribeUnary<LeakyRelu>("alpha = 0.01", "x, or alpha * x below 0"),
      DescribeUnary<Elu>("alpha = 1.0", "x, or alpha * (exp(x) - 1) below 0"),
      DescribeUnary<Selu>("alpha = 1.6733, gamma = 1.0507", "gamma * elu(x)"),
      DescribeUnary<Gelu>("approximate = none or tanh", "x * normal distribution function of x"),
      DescribeUnary<HardSigmoid>("alpha = 0.2, beta = 0.5", "alpha * x + beta, held in [0, 1]"),
      DescribeUnary<Clip>("min = -inf, max = inf", "x held in [min, max]; NaN stays"),
      Describe<Where>("condition, a, b -> out over a|b", "condition bool; a, b, out f32 f16", "",
                      "a where the condition holds, else b; all three broadcast", cpu::kElementwise),
      Describe<Cast>("x -> out", "others f32 f16 i64 i32 bool u8", "",
                     "x in out's dtype: at least one of the two is f32 or f16, and not both f16"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
