// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/elementwise/fused_steps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/elementwise/fused_steps.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/fused_functions-inl.h"
#include "rewire/kernels/cpu/math/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using FusedTag = hn::ScalableTag<float>;
using FusedVector = hn::Vec<FusedTag>;

// Operands that lie in memory, and those that are the same for all elements.
struct InMemory {
  const float* data;
  HWY_INLINE FusedVector At(std::int64_t i) const { return hn::LoadU(FusedTag(), data + i); }
  // So few elements that a vector has more, behind them zeros.
  HWY_INLINE FusedVector Rest(std::int64_t count) const {
    HWY_ALIGN float rest[hn::MaxLanes(FusedTag())] = {};
    std::copy_n(data, count, rest);
    return hn::Load(FusedTag(), rest);
  }
};
// Floats of bf16.
struct Widened {
  const std::uint16_t* data;
  HWY_INLINE FusedVector At(std::int64_t i) const { return LoadFloats(FusedTag(), data + i); }
  HWY_INLINE FusedVector Rest(std::int64_t count) const {
    HWY_ALIGN std::uint16_t rest[hn::MaxLanes(FusedTag())] = {};
    std::copy_n(data, count, rest);
    return LoadFloats(FusedTag(), rest);
  }
};
struct Repeated {
  FusedVector value;
  explicit Repeated(float number) : value(hn::Set(FusedTag(), number)) {}
  HWY_INLINE FusedVector At(std::int64_t) const { return value; }
  HWY_INLINE FusedVector Rest(std::int64_t) const { return value; }
};

// How results are written: as floats, or rounded to bf16.
struct Exact {
  using Element = float;
  HWY_INLINE static void Store(FusedTag d, FusedVector value, float* to) { hn::StoreU(value, d, to); }
};
template <class Way>
struct RoundedBy {
  using Element = std::uint16_t;
  HWY_INLINE static void Store(FusedTag d, FusedVector value, std::uint16_t* to) { Way::Store(d, value, to); }
};

// For at least as many elements as a vector has.
template <class Result, class F, class... Operands>
HWY_INLINE void EachOfManyTo(const F& f, typename Result::Element* out, std::int64_t count,
                             const Operands&... operands) {
  const FusedTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // The last vector may overlap the one before it. It is computed first, since `out` may be an operand.
  const FusedVector last = f(d, operands.At(count - lanes)...);
  std::int64_t i = 0;
  for (; i + 2 * lanes < count; i += 2 * lanes) {
    const FusedVector first = f(d, operands.At(i)...), second = f(d, operands.At(i + lanes)...);
    Result::Store(d, first, out + i);
    Result::Store(d, second, out + i + lanes);
  }
  for (; i + lanes < count; i += lanes) Result::Store(d, f(d, operands.At(i)...), out + i);
  Result::Store(d, last, out + count - lanes);
}

template <class Result, class F, class... Operands>
HWY_INLINE void EachTo(const F& f, typename Result::Element* out, std::int64_t count,
                       const Operands&... operands) {
  const FusedTag d;
  if (count >= static_cast<std::int64_t>(hn::Lanes(d)))
    return EachOfManyTo<Result>(f, out, count, operands...);
  HWY_ALIGN typename Result::Element rest[hn::MaxLanes(FusedTag())];
  Result::Store(d, f(d, operands.Rest(count)...), rest);
  std::copy_n(rest, count, out);
}

template <class F, class... Operands>
HWY_INLINE void Each(const F& f, float* out, std::int64_t count, const Operands&... operands) {
  EachTo<Exact>(f, out, count, operands...);
}

// Functions of one operand are long, so that there are few loops of them: fewer elements than a vector has
// are the front of one in memory of its own, and so is an operand that repeats a number.
template <class F>
HWY_NOINLINE void OfOne(const F f, const FusedElements* x, float* out, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FusedTag()));
  const float* from = x[0].data;
  if (from != nullptr && count >= lanes) return EachOfManyTo<Exact>(f, out, count, InMemory{from});
  HWY_ALIGN float front[hn::MaxLanes(FusedTag())] = {x[0].value};
  if (from != nullptr) std::copy_n(from, count, front);
  const FusedElements of_front{front, 0};
  OfOne(f, &of_front, front, lanes);
  if (from != nullptr)
    std::copy_n(front, count, out);
  else
    std::fill_n(out, count, front[0]);
}

template <class Result, class F>
HWY_INLINE void OfTwoFloatsTo(const F& f, const FusedElements* x, typename Result::Element* out,
                              std::int64_t count) {
  const InMemory a{x[0].data}, b{x[1].data};
  if (a.data == nullptr && b.data == nullptr)
    EachTo<Result>(f, out, count, Repeated(x[0].value), Repeated(x[1].value));
  else if (a.data == nullptr)
    EachTo<Result>(f, out, count, Repeated(x[0].value), b);
  else if (b.data == nullptr)
    EachTo<Result>(f, out, count, a, Repeated(x[1].value));
  else
    EachTo<Result>(f, out, count, a, b);
}

template <class Result, class F>
HWY_NOINLINE void OfTwoTo(const F f, const FusedElements* x, typename Result::Element* out,
                          std::int64_t count) {
  const InMemory b{x[1].data};
  const Widened widened{x[0].bf16};
  if (widened.data == nullptr)
    OfTwoFloatsTo<Result>(f, x, out, count);
  else if (b.data == nullptr)
    EachTo<Result>(f, out, count, widened, Repeated(x[1].value));
  else
    EachTo<Result>(f, out, count, widened, b);
}

template <class F>
void OfTwo(const F f, const FusedElements* x, FusedResult out, std::int64_t count) {
  if (out.bf16 == nullptr) return OfTwoTo<Exact>(f, x, out.floats, count);
#if HWY_TARGET == HWY_AVX3
  static const bool kHasInstructions = HasBf16Instructions();
  if (kHasInstructions) return OfTwoTo<RoundedBy<Bf16ByInstruction>>(f, x, out.bf16, count);
#endif
  OfTwoTo<RoundedBy<Bf16ByBits>>(f, x, out.bf16, count);
}

// The same of truth values, which neither read nor write bf16.
template <class F>
HWY_NOINLINE void OfTruths(const F f, const FusedElements* x, float* out, std::int64_t count) {
  OfTwoFloatsTo<Exact>(f, x, out, count);
}

// F of a result of F and a third operand. The first operand lies in memory.
template <class F>
struct Twice {
  HWY_INLINE FusedVector operator()(FusedTag d, FusedVector a, FusedVector b, FusedVector c) const {
    return F()(d, F()(d, a, b), c);
  }
};
template <class F>
HWY_NOINLINE void OfPair(const FusedElements* x, float* out, std::int64_t count) {
  const InMemory a{x[0].data}, b{x[1].data}, c{x[2].data};
  if (b.data == nullptr && c.data == nullptr)
    Each(Twice<F>(), out, count, a, Repeated(x[1].value), Repeated(x[2].value));
  else if (b.data == nullptr)
    Each(Twice<F>(), out, count, a, Repeated(x[1].value), c);
  else if (c.data == nullptr)
    Each(Twice<F>(), out, count, a, b, Repeated(x[2].value));
  else
    Each(Twice<F>(), out, count, a, b, c);
}

// A product and a sum as the two steps give them.
struct ScaledAndShifted {
  float factor, term;
  HWY_INLINE FusedVector operator()(FusedTag d, FusedVector x) const {
    return hn::Add(RoundedProduct(x, hn::Set(d, factor)), hn::Set(d, term));
  }
};

struct Choose {
  HWY_INLINE FusedVector operator()(FusedTag d, FusedVector condition, FusedVector a, FusedVector b) const {
    return hn::IfThenElse(hn::Eq(condition, hn::Zero(d)), b, a);
  }
};

HWY_NOINLINE void RunWhere(const FusedElements* x, float* out, std::int64_t count) {
  const InMemory condition{x[0].data}, a{x[1].data}, b{x[2].data};
  if (condition.data == nullptr) {
    const FusedElements& chosen = x[0].value == 0 ? x[2] : x[1];
    if (chosen.data == nullptr)
      std::fill_n(out, count, chosen.value);
    else if (chosen.data != out)
      std::copy_n(chosen.data, count, out);
  } else if (a.data == nullptr && b.data == nullptr) {
    Each(Choose(), out, count, condition, Repeated(x[1].value), Repeated(x[2].value));
  } else if (a.data == nullptr) {
    Each(Choose(), out, count, condition, Repeated(x[1].value), b);
  } else if (b.data == nullptr) {
    Each(Choose(), out, count, condition, a, Repeated(x[2].value));
  } else {
    Each(Choose(), out, count, condition, a, b);
  }
}

// A quotient by a power of two is the product with its reciprocal, to the bit, and takes a fraction of the
// time.
void RunDiv(const FusedElements* x, FusedResult out, std::int64_t count) {
  const FusedElements& by = x[1];
  int exponent = 0;
  if (by.data != nullptr || std::fabs(std::frexp(by.value, &exponent)) != 0.5F || std::abs(exponent) > 100)
    return OfTwo(DivOfVectors(), x, out, count);
  const FusedElements factors[] = {x[0], {nullptr, 1 / by.value}};
  OfTwo(MulOfVectors(), factors, out, count);
}

void RunFusedStep(FusedCode code, const FusedElements* x, FusedResult result, std::int64_t count) {
  float* out = result.floats;
  switch (code) {
#define REWIRE_ONE(name)   \
  case FusedCode::k##name: \
    return OfOne(name##OfVector(), x, out, count)
#define REWIRE_TWO(name)   \
  case FusedCode::k##name: \
    return OfTwo(name##OfVectors(), x, result, count)
#define REWIRE_TRUTHS(name) \
  case FusedCode::k##name:  \
    return OfTruths(name##OfVectors(), x, out, count)
    REWIRE_TWO(Add);
    REWIRE_TWO(Sub);
    REWIRE_TWO(Mul);
    REWIRE_TWO(Min);
    REWIRE_TWO(Max);
    REWIRE_TWO(AtLeast);
    REWIRE_TWO(AtMost);
    REWIRE_TWO(PRelu);
    REWIRE_TRUTHS(Equal);
    REWIRE_TRUTHS(NotEqual);
    REWIRE_TRUTHS(Less);
    REWIRE_TRUTHS(LessEqual);
    REWIRE_TRUTHS(And);
    REWIRE_TRUTHS(Or);
    REWIRE_ONE(Not);
    REWIRE_ONE(Neg);
    REWIRE_ONE(Abs);
    REWIRE_ONE(Sign);
    REWIRE_ONE(Relu);
    REWIRE_ONE(Reciprocal);
    REWIRE_ONE(Round);
    REWIRE_ONE(Floor);
    REWIRE_ONE(Ceil);
    REWIRE_ONE(Sqrt);
    REWIRE_ONE(Exp);
    REWIRE_ONE(Log);
    REWIRE_ONE(Sin);
    REWIRE_ONE(Cos);
    REWIRE_ONE(Tanh);
    REWIRE_ONE(Erf);
    REWIRE_ONE(Sigmoid);
    REWIRE_ONE(Softplus);
    REWIRE_ONE(Softsign);
    REWIRE_ONE(HardSwish);
    REWIRE_ONE(Swish);
    REWIRE_ONE(Mish);
    REWIRE_ONE(Gelu);
    REWIRE_ONE(GeluTanh);
#undef REWIRE_ONE
#undef REWIRE_TRUTHS
#undef REWIRE_TWO
    case FusedCode::kAddAdd:
      return OfPair<AddOfVectors>(x, out, count);
    case FusedCode::kMinMin:
      return OfPair<MinOfVectors>(x, out, count);
    case FusedCode::kMaxMax:
      return OfPair<MaxOfVectors>(x, out, count);
    case FusedCode::kMulAdd:
      return OfOne(ScaledAndShifted{x[1].value, x[2].value}, x, out, count);
    case FusedCode::kDiv:
      return RunDiv(x, result, count);
    case FusedCode::kWhere:
      return RunWhere(x, out, count);
    case FusedCode::kElu:
      return OfOne(EluOfVector{x[1].value}, x, out, count);
    case FusedCode::kClip:
      return OfOne(ClipOfVector{x[1].value, x[2].value}, x, out, count);
    case FusedCode::kHardSigmoid:
      return OfOne(HardSigmoidOfVector{x[1].value, x[2].value}, x, out, count);
    case FusedCode::kDequantize:
      return OfOne(DequantizeOfVector{x[1].value, x[2].value}, x, out, count);
    case FusedCode::kQuantize:
      return OfOne(QuantizeOfVector{x[1].value, x[2].value}, x, out, count);
  }
}

void WidenBlock(const std::uint16_t* from, std::int64_t count, float* to) {
  const FusedTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(LoadFloats(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
}

template <class Rounding>
void RoundBlock(const float* from, std::int64_t count, std::uint16_t* to) {
  const FusedTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) Rounding::Store(d, hn::LoadU(d, from + i), to + i);
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(FusedTag())] = {};
  HWY_ALIGN std::uint16_t rounded[hn::MaxLanes(FusedTag())];
  std::copy(from + i, from + count, rest);
  Rounding::Store(d, hn::Load(d, rest), rounded);
  std::copy_n(rounded, count - i, to + i);
}

void TruthsBlock(const std::uint8_t* from, std::int64_t count, float* to) {
  const FusedTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto convert = [&](std::int64_t i) HWY_ATTR {
    const auto bits = hn::PromoteTo(hn::RebindToUnsigned<FusedTag>(),
                                    hn::LoadU(hn::Rebind<std::uint8_t, FusedTag>(), from + i));
    const auto is_false = hn::RebindMask(d, hn::Eq(bits, hn::Zero(hn::RebindToUnsigned<FusedTag>())));
    hn::StoreU(hn::IfThenZeroElse(is_false, hn::Set(d, 1.0F)), d, to + i);
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) convert(i);
  if (i == count) return;
  // The last vector overlaps the one before it.
  if (count >= lanes) return convert(count - lanes);
  for (; i < count; ++i) to[i] = from[i] != 0 ? 1.0F : 0.0F;
}

FusedConversions ConversionsOfTarget() {
#if HWY_TARGET == HWY_AVX3
  if (HasBf16Instructions()) return {&WidenBlock, &RoundBlock<Bf16ByInstruction>, &TruthsBlock};
#endif
  return {&WidenBlock, &RoundBlock<Bf16ByBits>, &TruthsBlock};
}

FusedStepKernel FusedStepOfTarget() { return &RunFusedStep; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

bool ReadsBf16(FusedCode code) {
  switch (code) {
    case FusedCode::kAdd:
    case FusedCode::kSub:
    case FusedCode::kMul:
    case FusedCode::kDiv:
    case FusedCode::kMin:
    case FusedCode::kMax:
    case FusedCode::kAtLeast:
    case FusedCode::kAtMost:
    case FusedCode::kPRelu:
      return true;
    default:
      return false;
  }
}

HWY_EXPORT(FusedStepOfTarget);
HWY_EXPORT(ConversionsOfTarget);

FusedStepKernel ChooseFusedStepKernel() { return HWY_DYNAMIC_DISPATCH(FusedStepOfTarget)(); }

FusedStepKernel BestFusedStepKernel() {
  static const FusedStepKernel kBest = ChooseFusedStepKernel();
  return kBest;
}

FusedConversions ChooseFusedConversions() { return HWY_DYNAMIC_DISPATCH(ConversionsOfTarget)(); }

const FusedConversions& BestFusedConversions() {
  static const FusedConversions kBest = ChooseFusedConversions();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
