// SPDX-License-Identifier: Apache-2.0
// Running sums and products, and one-hot rows, along each axis against loops over single elements.
#include <catch2/catch.hpp>
#include <random>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

template <typename T>
HostTensor Numbers(const Shape& shape, std::mt19937& random) {
  HostTensor tensor = HostTensor::Empty<T>(shape);
  for (T& value : tensor.elements<T>()) value = static_cast<T>(static_cast<int>(random() % 9) - 4) / T{2};
  return tensor;
}

// The sum or the product of the elements before each one along the axis, in order, and it itself unless
// exclusive.
template <typename T>
std::vector<T> Running(const HostTensor& x, int axis, bool product, bool exclusive, bool reverse) {
  const Shape& shape = x.shape();
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::int64_t count = shape[static_cast<std::size_t>(axis)];
  const std::vector<T> in = x.values<T>();
  std::vector<T> out(in.size());
  for (std::int64_t line = 0; line < x.size() / count; ++line) {
    T total = product ? 1 : 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(line / inner * count * inner + line % inner +
                                               (reverse ? count - 1 - i : i) * inner);
      if (exclusive) out[at] = total;
      total = product ? total * in[at] : total + in[at];
      if (!exclusive) out[at] = total;
    }
  }
  return out;
}

TEMPLATE_TEST_CASE("running sums and products go along any axis", "", float, std::int32_t) {
  using T = TestType;
  std::mt19937 random(3);
  for (const Shape& shape : {Shape{5}, Shape{3, 7}, Shape{4, 5, 3}, Shape{2, 6, 4}, Shape{3, 4, 2, 5},
                             Shape{2, 3, 2100}, Shape{1, 1, 9}, Shape{17, 1, 1}}) {
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      HostTensor x = Numbers<T>(shape, random);
      HostTensor along = HostTensor::Of<std::int64_t>({}, {axis});
      for (int form = 0; form < 8; ++form) {
        const bool product = (form & 1) != 0, exclusive = (form & 2) != 0, reverse = (form & 4) != 0;
        CAPTURE(shape, axis, product, exclusive, reverse);
        HostTensor out = HostTensor::Empty<T>(shape);
        REQUIRE(Run(product ? "rewire.cumprod" : "rewire.cumsum", {&x, &along, &out},
                    {{"exclusive", exclusive ? 1 : 0}, {"reverse", reverse ? 1 : 0}}) == "");
        CHECK(out.values<T>() == Running<T>(x, axis, product, exclusive, reverse));
      }
    }
  }
}

TEMPLATE_TEST_CASE("one-hot rows lie along any axis", "", std::uint8_t, std::int16_t, float, double) {
  using T = TestType;
  std::mt19937 random(5);
  constexpr std::int64_t kDepth = 5;
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{3, 7}, Shape{2, 3, 4}, Shape{0, 3}}) {
    for (std::size_t axis = 0; axis <= shape.size(); ++axis) {
      CAPTURE(shape, axis);
      HostTensor indices = HostTensor::Empty<std::int64_t>(shape);
      for (std::int64_t& index : indices.elements<std::int64_t>())
        index = static_cast<std::int64_t>(random() % 14) - 7;
      HostTensor values = HostTensor::Of<T>({2}, {3, 8});
      Shape out_shape = shape;
      out_shape.insert(out_shape.begin() + static_cast<std::ptrdiff_t>(axis), kDepth);
      HostTensor out = HostTensor::Empty<T>(out_shape);
      REQUIRE(Run("rewire.one_hot", {&indices, &values, &out}, {{"axis", static_cast<std::int64_t>(axis)}}) ==
              "");
      std::int64_t inner = 1;
      for (std::size_t i = axis; i < shape.size(); ++i) inner *= shape[i];
      const std::vector<std::int64_t> index = indices.values<std::int64_t>();
      std::vector<T> expected;
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const std::int64_t position = i / inner % kDepth;
        const std::int64_t hot = index[static_cast<std::size_t>(i / (inner * kDepth) * inner + i % inner)];
        expected.push_back(static_cast<T>(hot == position || hot + kDepth == position ? 8 : 3));
      }
      CHECK(out.values<T>() == expected);
    }
  }
}

}  // namespace
}  // namespace rewire::test
