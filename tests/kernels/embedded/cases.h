// SPDX-License-Identifier: Apache-2.0
//
// Draws calls of kernels, and compares what an embedded kernel computes with what the stock kernel does.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/kernels/embedded/rewire_embedded.h"
#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test::embedded {

// Whether the stock kernels multiply and add in one operation on this machine, as the embedded ones do here.
inline bool StockFuses() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0;
#else
  return true;
#endif
}

// The same sequence in each run.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : state_(seed * 2654435761u + 12345) {}
  std::uint32_t Bits() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  int Int(int least, int most) {
    return least + static_cast<int>(Bits() % static_cast<std::uint32_t>(most - least + 1));
  }
  bool Bool() { return Bits() % 2 == 0; }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return values.begin()[Bits() % values.size()];
  }
  float Float() { return static_cast<float>(Bits()) / 8388608.0F - 1.0F; }

  // Small whole numbers, whose sums are exact in any order.
  HostTensor Whole(const Shape& shape) {
    return Filled<float>(shape, [&] { return static_cast<float>(Int(-4, 4)); });
  }
  HostTensor Floats(const Shape& shape) {
    return Filled<float>(shape, [&] { return Float(); });
  }
  template <typename T>
  HostTensor Bytes(const Shape& shape) {
    return Filled<T>(shape, [&] { return static_cast<T>(Bits()); });
  }
  template <typename T, class F>
  HostTensor Filled(const Shape& shape, const F& value) {
    HostTensor tensor = HostTensor::Empty<T>(shape);
    for (T& element : tensor.elements<T>()) element = value();
    return tensor;
  }

 private:
  std::uint32_t state_;
};

template <typename T>
T* Data(HostTensor& tensor) {
  return tensor.elements<T>().first;
}
template <typename T>
const T* DataOrNull(HostTensor& tensor) {
  return tensor.size() == 0 ? nullptr : Data<T>(tensor);
}

// Equal to the bit, but for which NaN it is.
template <typename T>
void CheckSame(const HostTensor& given, const HostTensor& stock) {
  const auto a = given.values<T>(), b = stock.values<T>();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    }
    FAIL("element " << i << " is " << +a[i] << ", of the stock kernel " << +b[i]);
  }
}

// |given - stock| <= bound of each element.
inline void CheckWithin(const HostTensor& given, const HostTensor& stock, const std::vector<float>& bounds) {
  const auto a = given.values<float>(), b = stock.values<float>();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= bounds[i]) && !(std::isnan(a[i]) && std::isnan(b[i])))
      FAIL("element " << i << " is " << a[i] << ", of the stock kernel " << b[i] << ", bound " << bounds[i]);
  }
}
// |given - stock| is at most so many units in the last place of the stock kernel's result, or `least`.
inline void CheckNear(const HostTensor& given, const HostTensor& stock, float units, float least = 1e-37F) {
  const auto a = given.values<float>(), b = stock.values<float>();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::fabs(a[i] - b[i]) <= std::max(least, units * std::fabs(b[i]) * 0x1p-23F)))
      FAIL("element " << i << " is " << a[i] << ", of the stock kernel " << b[i]);
  }
}

// A window along one axis, and what the attributes of the stock kernel say of it. Null outputs are possible
// for pools with padding alone.
struct DrawnAxis {
  rewire_embedded_axis axis;
  int after;
};
inline DrawnAxis DrawAxis(Draw& draw, bool pads = true) {
  for (;;) {
    DrawnAxis drawn{};
    rewire_embedded_axis& axis = drawn.axis;
    axis.input = draw.Int(1, 9);
    axis.kernel = draw.Int(1, 4);
    axis.stride = draw.Int(1, 3);
    axis.dilation = draw.Int(1, 2);
    axis.before = pads ? draw.Int(0, 3) : 0;
    drawn.after = pads ? draw.Int(0, 3) : 0;
    const int left = axis.input + axis.before + drawn.after - ((axis.kernel - 1) * axis.dilation + 1);
    if (left < 0) continue;
    axis.output = left / axis.stride + 1;
    return drawn;
  }
}

// A window of one or two axes.
struct DrawnWindow {
  DrawnAxis rows, columns;
  int rank;

  std::vector<std::int64_t> Pick(std::int32_t rewire_embedded_axis::*member) const {
    if (rank == 1) return {columns.axis.*member};
    return {rows.axis.*member, columns.axis.*member};
  }
  std::vector<std::int64_t> Pads() const {
    if (rank == 1) return {columns.axis.before, columns.after};
    return {rows.axis.before, columns.axis.before, rows.after, columns.after};
  }
  AttributeList Attributes(bool kernel_shape) const {
    AttributeList list = {{"strides", Pick(&rewire_embedded_axis::stride)},
                          {"dilations", Pick(&rewire_embedded_axis::dilation)},
                          {"pads", Pads()}};
    if (kernel_shape) list.push_back({"kernel_shape", Pick(&rewire_embedded_axis::kernel)});
    return list;
  }
  // [images, sizes..., channels] or [images, channels, sizes...].
  Shape Of(std::int32_t rewire_embedded_axis::*member, std::int64_t images, std::int64_t channels,
           bool last) const {
    Shape shape = {images};
    if (!last) shape.push_back(channels);
    for (const std::int64_t size : Pick(member)) shape.push_back(size);
    if (last) shape.push_back(channels);
    return shape;
  }
  int taps() const { return rows.axis.kernel * columns.axis.kernel; }
};
inline DrawnWindow DrawWindow(Draw& draw, bool pads = true) {
  DrawnWindow window{{REWIRE_EMBEDDED_NO_AXIS, 0}, DrawAxis(draw, pads), draw.Int(1, 2)};
  if (window.rank == 2) window.rows = DrawAxis(draw, pads);
  return window;
}

inline AttributeList With(AttributeList list, const AttributeList& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace rewire::test::embedded
