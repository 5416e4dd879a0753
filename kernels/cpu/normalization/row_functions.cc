// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/normalization/row_functions.h"

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
Moments MomentsOf(const T* x, std::int64_t count, double shift) {
  const Doubles d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const hn::Vec<Doubles> shifts[] = {hn::Set(d, shift)};
  VectorMoments<kVectors> of(d);
  std::int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) of.Add(d, x + i, shifts);
  VectorMoments<1> rest(d);
  for (; i + lanes <= count; i += lanes) rest.Add(d, x + i, shifts);
  const auto total = [&](const auto& vectors, const auto& last) {
    const auto first = hn::Add(hn::Add(vectors[0], vectors[1]), hn::Add(vectors[2], vectors[3]));
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(first, last[0])));
  };
  Moments moments = {total(of.sums, rest.sums), total(of.squares, rest.squares)};
  for (; i < count; ++i) AddOne(x[i], shift, moments.sum, moments.squares);
  return moments;
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

// to[i] = result(d, i), in vectors and, for what is left, in vectors of one element.
template <typename T, class Result>
HWY_INLINE void ForVectors(std::int64_t count, T* to, const Result& result) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(result(d, i), d, to + i);
  for (; i < count; ++i) hn::StoreU(result(one, i), one, to + i);
}

template <typename T>
void Scale(const T* x, std::int64_t count, T center, T factor, T bias, T* to) {
  ForVectors(count, to, [=](auto d, std::int64_t i) {
    return hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, center)), hn::Set(d, factor), hn::Set(d, bias));
  });
}

template <typename T>
void ScaleEach(const T* x, std::int64_t count, T center, T factor, const T* scales, const T* biases, T* to) {
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
void ScaleColumns(const T* x, std::int64_t count, const T* centers, const T* factors, const T* biases,
                  T* to) {
  ForVectors(count, to, [=](auto d, std::int64_t i) {
    return hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, centers + i)), hn::LoadU(d, factors + i),
                      hn::LoadU(d, biases + i));
  });
}

template <typename T>
RowFunctions<T> FunctionsOf() {
  return {&MomentsOf<T>, &AddColumnMoments<T>, &Scale<T>, &ScaleEach<T>, &ScaleColumns<T>};
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
