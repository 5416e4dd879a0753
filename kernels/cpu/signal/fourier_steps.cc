// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/signal/fourier_steps.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/signal/fourier_steps.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A complex number of each lane.
template <class D>
struct Complex {
  using V = hn::Vec<D>;
  V real, imaginary;

  static HWY_INLINE Complex Load(D d, const double* from) {
    return {hn::LoadU(d, from), hn::LoadU(d, from + hn::Lanes(d))};
  }
  HWY_INLINE void Store(D d, double* to) const {
    hn::StoreU(real, d, to);
    hn::StoreU(imaginary, d, to + hn::Lanes(d));
  }
  HWY_INLINE Complex operator+(const Complex& other) const {
    return {hn::Add(real, other.real), hn::Add(imaginary, other.imaginary)};
  }
  HWY_INLINE Complex operator-(const Complex& other) const {
    return {hn::Sub(real, other.real), hn::Sub(imaginary, other.imaginary)};
  }
  HWY_INLINE Complex Times(V factor) const { return {hn::Mul(real, factor), hn::Mul(imaginary, factor)}; }
  HWY_INLINE Complex PlusTimes(V factor, const Complex& other) const {
    return {hn::MulAdd(factor, other.real, real), hn::MulAdd(factor, other.imaginary, imaginary)};
  }
  // Times i * factor.
  HWY_INLINE Complex Turned(V factor) const {
    return {hn::Neg(hn::Mul(imaginary, factor)), hn::Mul(real, factor)};
  }
  // Times the same complex number in each lane.
  HWY_INLINE Complex Rotated(D d, const double* root) const {
    const V c = hn::Set(d, root[0]), s = hn::Set(d, root[1]);
    return {hn::NegMulAdd(imaginary, s, hn::Mul(real, c)), hn::MulAdd(real, s, hn::Mul(imaginary, c))};
  }
};

// The transform of kRadix numbers, in place.
template <int kRadix, class D>
HWY_INLINE void TransformFew(D d, double sign, Complex<D>* x) {
  const auto set = [&](double value) { return hn::Set(d, value); };
  if constexpr (kRadix == 2) {
    const auto a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  } else if constexpr (kRadix == 3) {
    constexpr double kSin = 0.86602540378443864676;  // of a third of a turn
    const auto sum = x[1] + x[2];
    const auto turned = (x[1] - x[2]).Turned(set(sign * kSin));
    const auto middle = x[0].PlusTimes(set(-0.5), sum);
    x[0] = x[0] + sum;
    x[1] = middle + turned;
    x[2] = middle - turned;
  } else if constexpr (kRadix == 4) {
    const auto even = x[0] + x[2], even_less = x[0] - x[2];
    const auto odd = x[1] + x[3], turned = (x[1] - x[3]).Turned(set(sign));
    x[0] = even + odd;
    x[1] = even_less + turned;
    x[2] = even - odd;
    x[3] = even_less - turned;
  } else {
    // Cosines and sines of one and two fifths of a turn.
    constexpr double kCos1 = 0.30901699437494742410, kCos2 = -0.80901699437494742410;
    constexpr double kSin1 = 0.95105651629515357212, kSin2 = 0.58778525229247312917;
    const auto outer = x[1] + x[4], inner = x[2] + x[3];
    const auto outer_less = x[1] - x[4], inner_less = x[2] - x[3];
    const auto first = x[0].PlusTimes(set(kCos1), outer).PlusTimes(set(kCos2), inner);
    const auto second = x[0].PlusTimes(set(kCos2), outer).PlusTimes(set(kCos1), inner);
    const auto one = set(sign);
    const auto first_turned = outer_less.Times(set(kSin1)).PlusTimes(set(kSin2), inner_less).Turned(one);
    const auto second_turned = outer_less.Times(set(kSin2)).PlusTimes(set(-kSin1), inner_less).Turned(one);
    x[0] = x[0] + outer + inner;
    x[1] = first + first_turned;
    x[2] = second + second_turned;
    x[3] = second - second_turned;
    x[4] = first - first_turned;
  }
}

template <int kRadix, class D>
HWY_NOINLINE void RunFourierPass(D d, const FourierPass& pass, std::int64_t begin, std::int64_t end) {
  const std::int64_t number = 2 * static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t positions = pass.parts * pass.stride;
  while (begin < end) {
    const std::int64_t part = begin / pass.stride;
    const std::int64_t last = std::min(end, (part + 1) * pass.stride);
    const double* from = pass.from + begin * number;
    double* to = pass.to + (begin + part * (kRadix - 1) * pass.stride) * number;
    for (; begin < last; ++begin, from += number, to += number) {
      Complex<D> x[kRadix];
      for (int j = 0; j < kRadix; ++j) x[j] = Complex<D>::Load(d, from + j * positions * number);
      TransformFew<kRadix>(d, pass.sign, x);
      x[0].Store(d, to);
      for (int k = 1; k < kRadix; ++k) {
        if (part != 0) x[k] = x[k].Rotated(d, pass.roots + 2 * part * k * pass.stride);
        x[k].Store(d, to + k * pass.stride * number);
      }
    }
  }
}

// Calls body with vectors of `lanes` lanes.
template <class Body>
HWY_INLINE void WithLanes(std::int64_t lanes, const Body& body) {
  constexpr std::size_t kMost = hn::MaxLanes(hn::CappedTag<double, 8>());
  if constexpr (kMost >= 8) {
    if (lanes == 8) return body(hn::CappedTag<double, 8>());
  }
  if constexpr (kMost >= 4) {
    if (lanes == 4) return body(hn::CappedTag<double, 4>());
  }
  if constexpr (kMost >= 2) {
    if (lanes == 2) return body(hn::CappedTag<double, 2>());
  }
  body(hn::CappedTag<double, 1>());
}

void PassOfTarget(const FourierPass& pass, std::int64_t begin, std::int64_t end) {
  WithLanes(pass.lanes, [&](auto d) {
    switch (pass.radix) {
      case 2:
        return RunFourierPass<2>(d, pass, begin, end);
      case 3:
        return RunFourierPass<3>(d, pass, begin, end);
      case 4:
        return RunFourierPass<4>(d, pass, begin, end);
      default:
        return RunFourierPass<5>(d, pass, begin, end);
    }
  });
}

void MultiplyOfTarget(const FourierProduct& product, std::int64_t begin, std::int64_t end) {
  WithLanes(product.lanes, [&](auto d) {
    const std::int64_t number = 2 * product.lanes;
    const auto scale = hn::Set(d, product.scale);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = product.reversed == 0 || i == 0 ? i : product.reversed - i;
      Complex<decltype(d)>::Load(d, product.from + at * number)
          .Rotated(d, product.factors + 2 * i)
          .Times(scale)
          .Store(d, product.to + i * number);
    }
  });
}

void SeparateOfTarget(double* data, const double* turns, std::int64_t half, std::int64_t lanes,
                      std::int64_t begin, std::int64_t end) {
  WithLanes(lanes, [&](auto d) {
    using C = Complex<decltype(d)>;
    const std::int64_t number = 2 * lanes;
    const auto one_half = hn::Set(d, 0.5);
    for (std::int64_t i = begin; i < end; ++i) {
      const C x = C::Load(d, data + i * number);
      // Bin `half` is bin 0 again.
      const C y = C::Load(d, data + (i == 0 ? 0 : half - i) * number);
      const C even = C{hn::Add(x.real, y.real), hn::Sub(x.imaginary, y.imaginary)}.Times(one_half);
      const C odd = C{hn::Add(x.imaginary, y.imaginary), hn::Sub(y.real, x.real)}.Times(one_half);
      const C turned = odd.Rotated(d, turns + 2 * i);
      const C opposite = even - turned;
      C{opposite.real, hn::Neg(opposite.imaginary)}.Store(d, data + (half - i) * number);
      (even + turned).Store(d, data + i * number);
    }
  });
}

FourierSteps FourierStepsOfTarget() {
  return {static_cast<std::int64_t>(hn::MaxLanes(hn::CappedTag<double, 8>())), &PassOfTarget,
          &MultiplyOfTarget, &SeparateOfTarget};
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(FourierStepsOfTarget);

FourierSteps ChooseFourierSteps() { return HWY_DYNAMIC_DISPATCH(FourierStepsOfTarget)(); }

const FourierSteps& BestFourierSteps() {
  static const FourierSteps kBest = ChooseFourierSteps();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
