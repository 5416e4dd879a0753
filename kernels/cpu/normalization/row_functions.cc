// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/normalization/row_functions.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/normalization/row_functions.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;

HWY_INLINE hn::Vec<Doubles> LoadDoubles(Doubles d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Doubles>(), from));
}
HWY_INLINE hn::Vec<Doubles> LoadDoubles(Doubles d, const double* from) { return hn::LoadU(d, from); }

// Moments of kVectors vectors side by side.
template <int kVectors>
struct VectorMoments {
  hn::Vec<Doubles> sums[kVectors];
  hn::Vec<Doubles> squares[kVectors];

  HWY_INLINE explicit VectorMoments(Doubles d) {
    for (int v = 0; v < kVectors; ++v) sums[v] = squares[v] = hn::Zero(d);
  }
  // Adds the vectors of x less `shifts`, of which there is one or one for each.
  template <int kShifts, typename T>
  HWY_INLINE void Add(Doubles d, const T* x, const hn::Vec<Doubles> (&shifts)[kShifts]) {
    for (int v = 0; v < kVectors; ++v) {
      const auto value = hn::Sub(LoadDoubles(d, x + v * static_cast<int>(hn::Lanes(d))), shifts[v % kShifts]);
      sums[v] = hn::Add(sums[v], value);
      squares[v] = hn::MulAdd(value, value, squares[v]);
    }
  }
};

template <typename T>
HWY_INLINE void AddOne(T x, double shift, double& sum, double& squares) {
  const double value = static_cast<double>(x) - shift;
  sum += value;
  squares += value * value;
}

constexpr int kVectors = 4;

template <typename T>
HWY_INLINE Moments MomentsOfRow(const T* x, std::int64_t count, double shift) {
  const Doubles d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Moments moments;
  std::int64_t i = 0;
  if (count >= lanes) {
    const hn::Vec<Doubles> shifts[] = {hn::Set(d, shift)};
    VectorMoments<1> sum(d);
    if (count >= kVectors * lanes) {
      VectorMoments<kVectors> of(d);
      for (; i + kVectors * lanes <= count; i += kVectors * lanes) of.Add(d, x + i, shifts);
      const auto total = [](const auto& vectors) HWY_ATTR {
        return hn::Add(hn::Add(vectors[0], vectors[1]), hn::Add(vectors[2], vectors[3]));
      };
      sum.sums[0] = total(of.sums);
      sum.squares[0] = total(of.squares);
    }
    for (; i + lanes <= count; i += lanes) sum.Add(d, x + i, shifts);
    if (i < count) {
      // The last vector, but for what it shares with the one before.
      const auto value = hn::Sub(LoadDoubles(d, x + count - lanes), shifts[0]);
      const auto shared = hn::FirstN(d, static_cast<std::size_t>(lanes - (count - i)));
      const auto rest = hn::IfThenZeroElse(shared, value);
      sum.sums[0] = hn::Add(sum.sums[0], rest);
      sum.squares[0] = hn::MulAdd(rest, rest, sum.squares[0]);
    }
    return {hn::GetLane(hn::SumOfLanes(d, sum.sums[0])), hn::GetLane(hn::SumOfLanes(d, sum.squares[0]))};
  }
  for (; i < count; ++i) AddOne(x[i], shift, moments.sum, moments.squares);
  return moments;
}

template <typename T>
Moments MomentsOf(const T* x, std::int64_t count, double shift) {
  return MomentsOfRow(x, count, shift);
}

// Works on kCount vectors of columns.
template <int kCount, typename T>
void AddVectorsOfColumns(const T* x, std::int64_t rows, std::int64_t stride, const T* shifts, double* sums,
                         double* squares) {
  const Doubles d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  VectorMoments<kCount> of(d);
  hn::Vec<Doubles> by[kCount];
  for (int v = 0; v < kCount; ++v) by[v] = LoadDoubles(d, shifts + v * lanes);
  for (std::int64_t r = 0; r < rows; ++r) of.Add(d, x + r * stride, by);
  const auto add = [&](hn::Vec<Doubles> x, double* to) { hn::StoreU(hn::Add(hn::LoadU(d, to), x), d, to); };
  for (int v = 0; v < kCount; ++v) {
    add(of.sums[v], sums + v * lanes);
    add(of.squares[v], squares + v * lanes);
  }
}

template <typename T>
void AddColumnMoments(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, const T* shifts,
                      double* sums, double* squares) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Doubles()));
  std::int64_t c = 0;
  for (; c + kVectors * lanes <= width; c += kVectors * lanes)
    AddVectorsOfColumns<kVectors>(x + c, rows, stride, shifts + c, sums + c, squares + c);
  for (; c + lanes <= width; c += lanes)
    AddVectorsOfColumns<1>(x + c, rows, stride, shifts + c, sums + c, squares + c);
  for (; c < width; ++c) {
    for (std::int64_t r = 0; r < rows; ++r)
      AddOne(x[r * stride + c], static_cast<double>(shifts[c]), sums[c], squares[c]);
  }
}

// to[i] = result(d, i), in vectors. What is left goes by a last vector over the one before it, which is
// computed first, because `to` may be what is read. Fewer elements than a vector has take shorter ones.
template <class D, typename T, class Result>
HWY_INLINE void ForVectorsOf(D d, std::int64_t count, T* to, const Result& result) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (count < lanes) {
      constexpr std::size_t kShorter = std::max<std::size_t>(1, hn::MaxLanes(D()) / 4);
      return ForVectorsOf(hn::CappedTag<T, kShorter>(), count, to, result);
    }
    const auto last = result(d, count - lanes);
    for (std::int64_t i = 0; i + lanes < count; i += lanes) hn::StoreU(result(d, i), d, to + i);
    hn::StoreU(last, d, to + count - lanes);
  } else {
    for (std::int64_t i = 0; i < count; ++i) hn::StoreU(result(d, i), d, to + i);
  }
}

template <typename T, class Result>
HWY_INLINE void ForVectors(std::int64_t count, T* to, const Result& result) {
  ForVectorsOf(hn::ScalableTag<T>(), count, to, result);
}

template <typename T>
void Scale(const T* x, std::int64_t count, T center, T factor, T bias, T* to) {
  ForVectors(count, to, [=](auto d, std::int64_t i) {
    return hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, center)), hn::Set(d, factor), hn::Set(d, bias));
  });
}

template <typename T>
HWY_INLINE void ScaleRow(const T* x, std::int64_t count, T center, T factor, const T* scales, const T* biases,
                         T* to) {
  const auto normal = [=](auto d, std::int64_t i) {
    return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, center)), hn::Set(d, factor));
  };
  if (biases == nullptr) {
    return ForVectors(
        count, to, [=](auto d, std::int64_t i) { return hn::Mul(normal(d, i), hn::LoadU(d, scales + i)); });
  }
  ForVectors(count, to, [=](auto d, std::int64_t i) {
    return hn::MulAdd(normal(d, i), hn::LoadU(d, scales + i), hn::LoadU(d, biases + i));
  });
}

template <typename T>
void ScaleEach(const T* x, std::int64_t count, T center, T factor, const T* scales, const T* biases, T* to) {
  ScaleRow(x, count, center, factor, scales, biases, to);
}

template <typename T>
void NormalizeRows(const T* x, std::int64_t begin, std::int64_t end, std::int64_t count, const RowNorm<T>& by,
                   T* to) {
  const RowNorm<T> norm = by;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* from = x + row * count;
    const double shift = norm.ShiftOf(from);
    const Spread<T> spread = norm.SpreadOfRow(MomentsOfRow(from, count, shift), count, shift);
    ScaleRow(from, count, spread.center, spread.factor, norm.scales, norm.biases, to + row * count);
    norm.Keep(row, spread);
  }
}

template <typename T>
void ScaleColumns(const T* x, std::int64_t count, const T* centers, const T* factors, const T* biases,
                  T* to) {
  ForVectors(count, to, [=](auto d, std::int64_t i) {
    return hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, centers + i)), hn::LoadU(d, factors + i),
                      hn::LoadU(d, biases + i));
  });
}

template <typename T>
RowFunctions<T> FunctionsOf() {
  return {&MomentsOf<T>, &AddColumnMoments<T>, &Scale<T>, &ScaleEach<T>, &ScaleColumns<T>, &NormalizeRows<T>};
}
RowFunctions<float> FloatFunctions() { return FunctionsOf<float>(); }
RowFunctions<double> DoubleFunctions() { return FunctionsOf<double>(); }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(FloatFunctions);
HWY_EXPORT(DoubleFunctions);

template <>
RowFunctions<float> ChooseRowFunctions<float>() {
  return HWY_DYNAMIC_DISPATCH(FloatFunctions)();
}
template <>
RowFunctions<double> ChooseRowFunctions<double>() {
  return HWY_DYNAMIC_DISPATCH(DoubleFunctions)();
}

}  // namespace rewire::kernel::cpu
#endif
