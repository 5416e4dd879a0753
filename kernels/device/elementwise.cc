// SPDX-License-Identifier: Apache-2.0
// Each element by itself.
#include <limits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/elementwise_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// An operation of one operand with up to two parameters. `Op` reads them from its attributes. It may name an
// operation of integers too, and the types that it takes.
template <typename Op>
struct Unary {
  static constexpr const char* kName = Op::kName;
  double p = 0;
  double q = 0;
  int operation = Op::kOperation;
  static Status Make(Attributes& attributes, Unary* unary) {
    if constexpr (requires { Op::Read(attributes, unary); }) Op::Read(attributes, unary);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).SameDType("out", out, "x", x);
    if (Status s = checks.Shape("out", out, x.dims()).Take(); !s.ok()) return s;
    IntegerType type{};
    ElementTypes types = kReals;
    if constexpr (kTakesIntegers) types |= Op::kIntegerTypes;
    if (Status s = ElementTypeOf("x", x, types, &type); !s.ok()) return s;
    if constexpr (kTakesIntegers) {
      if (type != kTypeReal) return RunIntegers(x, out, type);
    }
    Call call(out, Program::kElementwise, RealForm(x), "unary");
    call.Tensor(x).Tensor(out).Int(operation).Value(static_cast<float>(p)).Value(static_cast<float>(q));
    call.Int(out.size());
    return call.Each(out.size());
  }

 private:
  static constexpr bool kTakesIntegers = requires { Op::kIntegerTypes; };
  Status RunIntegers(TensorView x, TensorView out, IntegerType type) const {
    Call call(out, Program::kInteger, Form::kF32, "integer_unary");
    call.Tensor(x).Tensor(out).Int(type).Int(Op::kIntegerOperation);
    call.Value(HeldIn(type, p)).Value(HeldIn(type, q)).Int(out.size());
    return call.Each(out.size());
  }
};

#define REWIRE_UNARY(Type, name, code)                           \
  struct Type {                                                  \
    static constexpr const char* kName = names::kOnDevice<name>; \
    static constexpr int kOperation = code;                      \
  };
REWIRE_UNARY(Ceil, names::kCeil, kCeil)
REWIRE_UNARY(Cos, names::kCos, kCos)
REWIRE_UNARY(Erf, names::kErf, kErf)
REWIRE_UNARY(Exp, names::kExp, kExp)
REWIRE_UNARY(Floor, names::kFloor, kFloor)
REWIRE_UNARY(HardSwish, names::kHardSwish, kHardSwish)
REWIRE_UNARY(Log, names::kLog, kLog)
REWIRE_UNARY(Reciprocal, names::kReciprocal, kReciprocal)
REWIRE_UNARY(Round, names::kRound, kRound)
REWIRE_UNARY(Sigmoid, names::kSigmoid, kSigmoid)
REWIRE_UNARY(Sin, names::kSin, kSin)
REWIRE_UNARY(Softplus, names::kSoftplus, kSoftplus)
REWIRE_UNARY(Sqrt, names::kSqrt, kSqrt)
REWIRE_UNARY(Swish, names::kSwish, kSwish)
REWIRE_UNARY(Tanh, names::kTanh, kTanh)
#undef REWIRE_UNARY

#define REWIRE_UNARY(Type, name, code, integer_code, types)      \
  struct Type {                                                  \
    static constexpr const char* kName = names::kOnDevice<name>; \
    static constexpr int kOperation = code;                      \
    static constexpr int kIntegerOperation = integer_code;       \
    static constexpr ElementTypes kIntegerTypes = types;         \
  };
REWIRE_UNARY(Abs, names::kAbs, kAbs, kIntegerAbs, kIntegers)
REWIRE_UNARY(Neg, names::kNeg, kNegate, kIntegerNegate, kSigned)
REWIRE_UNARY(Relu, names::kRelu, kRelu, kIntegerRelu, kSigned)
REWIRE_UNARY(Sign, names::kSign, kSign, kIntegerSign, kIntegers)
#undef REWIRE_UNARY

struct LeakyRelu {
  static constexpr const char* kName = names::kOnDevice<names::kLeakyRelu>;
  static constexpr int kOperation = kLeakyRelu;
  static void Read(Attributes& attributes, Unary<LeakyRelu>* unary) {
    unary->p = contract::kLeakyReluAlpha.Read(attributes);
  }
};
struct Elu {
  static constexpr const char* kName = names::kOnDevice<names::kElu>;
  static constexpr int kOperation = kElu;
  static void Read(Attributes& attributes, Unary<Elu>* unary) {
    unary->p = contract::kEluAlpha.Read(attributes);
  }
};
struct Selu {
  static constexpr const char* kName = names::kOnDevice<names::kSelu>;
  static constexpr int kOperation = kSelu;
  static void Read(Attributes& attributes, Unary<Selu>* unary) {
    unary->q = contract::kSeluGamma.Read(attributes);
    unary->p = unary->q * contract::kSeluAlpha.Read(attributes);
  }
};
struct Gelu {
  static constexpr const char* kName = names::kOnDevice<names::kGelu>;
  static constexpr int kOperation = kGelu;
  static void Read(Attributes& attributes, Unary<Gelu>* unary) {
    contract::GeluAttributes given;
    given.Read(attributes);
    if (given.tanh) unary->operation = kGeluTanh;
  }
};
struct HardSigmoid {
  static constexpr const char* kName = names::kOnDevice<names::kHardSigmoid>;
  static constexpr int kOperation = kHardSigmoid;
  static void Read(Attributes& attributes, Unary<HardSigmoid>* unary) {
    unary->p = contract::kHardSigmoidAlpha.Read(attributes);
    unary->q = contract::kHardSigmoidBeta.Read(attributes);
  }
};
struct Clip {
  static constexpr const char* kName = names::kOnDevice<names::kClip>;
  static constexpr int kOperation = kClip;
  static constexpr int kIntegerOperation = kIntegerClip;
  static constexpr ElementTypes kIntegerTypes = kIntegers;
  static void Read(Attributes& attributes, Unary<Clip>* unary) {
    unary->p = contract::kClipMin.Read(attributes);
    unary->q = contract::kClipMax.Read(attributes);
  }
};

struct BitNot {
  static constexpr const char* kName = names::kOnDevice<names::kBitNot>;
  static constexpr int kOperation = kBitNot;
  static constexpr ElementTypes kTypes = kIntegers;
};
struct Not {
  static constexpr const char* kName = names::kOnDevice<names::kNot>;
  static constexpr int kOperation = kNot;
  static constexpr ElementTypes kTypes = kBools;
};

template <typename Op>
struct IntegerUnary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).SameDType("out", out, "x", x);
    if (Status s = checks.Shape("out", out, x.dims()).Take(); !s.ok()) return s;
    IntegerType type{};
    if (Status s = ElementTypeOf("x", x, Op::kTypes, &type); !s.ok()) return s;
    Call call(out, Program::kInteger, Form::kF32, "integer_unary");
    call.Tensor(x).Tensor(out).Int(type).Int(Op::kOperation).Value(std::int64_t{0}).Value(std::int64_t{0});
    call.Int(out.size());
    return call.Each(out.size());
  }
};

Status Classify(TensorView x, TensorView out, bool positive, bool negative, bool nan) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).Real("x", x);
  if (Status s = checks.Shape("out", out, x.dims()).Take(); !s.ok()) return s;
  if (!out.Is<bool>()) return TypeError("out is ", DTypeName(out.dtype()), ", expected bool");
  Call call(out, Program::kElementwise, RealForm(x), "classify");
  call.Tensor(x).Tensor(out).Int(positive ? 1 : 0).Int(negative ? 1 : 0).Int(nan ? 1 : 0).Int(out.size());
  return call.Each(out.size());
}

struct IsNaN {
  static constexpr const char* kName = names::kOnDevice<names::kIsNan>;
  Status operator()(TensorView x, TensorView out) const { return Classify(x, out, false, false, true); }
};

struct IsInf : contract::IsInfAttributes {
  static constexpr const char* kName = names::kOnDevice<names::kIsInf>;
  static Status Make(Attributes& attributes, IsInf* isinf) {
    isinf->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    return Classify(x, out, positive, negative, false);
  }
};

template <typename Op>
constexpr Kernel DescribeUnary(const char* attributes, const char* meaning) {
  return Describe<Unary<Op>>("x -> out over x", "f32 f16", attributes, meaning, cpu::kElementwise);
}
constexpr const char kUnaryNumbers[] = "f32 f16 i64 i32 i16 i8 u16 u8";
constexpr const char kUnarySigned[] = "f32 f16 i64 i32 i16 i8";
template <typename Op>
constexpr Kernel DescribeNumbers(const char* dtypes, const char* attributes, const char* meaning) {
  return Describe<Unary<Op>>("x -> out over x", dtypes, attributes, meaning, cpu::kElementwise);
}

}  // namespace

std::span<const Kernel> ElementwiseKernels() {
  static constexpr Kernel kKernels[] = {
      DescribeNumbers<Abs>(kUnaryNumbers, "", "absolute value; integers wrap"),
      DescribeUnary<Ceil>("", "rounded up"),
      DescribeUnary<Cos>("", "cosine"),
      DescribeUnary<Erf>("", "error function"),
      DescribeUnary<Exp>("", "e to the power x"),
      DescribeUnary<Floor>("", "rounded down"),
      DescribeUnary<Log>("", "natural logarithm"),
      DescribeNumbers<Neg>(kUnarySigned, "", "-x; integers wrap"),
      DescribeUnary<Reciprocal>("", "1 / x"),
      DescribeUnary<Round>("", "rounded to the nearest integer, halves to even"),
      DescribeNumbers<Sign>(kUnaryNumbers, "", "-1, 0 or 1"),
      DescribeUnary<Sin>("", "sine"),
      DescribeUnary<Sqrt>("", "square root"),
      DescribeNumbers<Relu>(kUnarySigned, "", "max(x, 0); NaN stays"),
      DescribeUnary<Sigmoid>("", "1 / (1 + exp(-x))"),
      DescribeUnary<Tanh>("", "hyperbolic tangent"),
      DescribeUnary<Softplus>("", "log(1 + exp(x))"),
      DescribeUnary<Swish>("", "x / (1 + exp(-x))"),
      DescribeUnary<HardSwish>("", "x * (x * (1 / 6) + 0.5 held in [0, 1])"),
      DescribeUnary<LeakyRelu>("alpha = 0.01", "x, or alpha * x below 0"),
      DescribeUnary<Elu>("alpha = 1.0", "x, or alpha * (exp(x) - 1) below 0"),
      DescribeUnary<Selu>("alpha = 1.6733, gamma = 1.0507", "gamma * elu(x)"),
      DescribeUnary<Gelu>("approximate = none or tanh", "x * normal distribution function of x"),
      DescribeUnary<HardSigmoid>("alpha = 0.2, beta = 0.5", "alpha * x + beta, held in [0, 1]"),
      DescribeNumbers<Clip>(
          kUnaryNumbers, "min = -inf, max = inf",
          "min(max, max(min, x)): max where min is above it. NaN stays, and a bound that is NaN is none"),
      Describe<IntegerUnary<BitNot>>("x -> out over x", "i64 i32 i16 i8 u16 u8", "", "each bit inverted",
                                     cpu::kElementwise),
      Describe<IntegerUnary<Not>>("x -> out over x", "bool", "", "not x", cpu::kElementwise),
      Describe<IsNaN>("x -> out", "x f32 f16; out bool", "", "whether x is NaN", cpu::kElementwise),
      Describe<IsInf>("x -> out", "x f32 f16; out bool", "detect_positive = 1, detect_negative = 1",
                      "whether x is infinite, of the signs asked for", cpu::kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
