// SPDX-License-Identifier: Apache-2.0
// Elements that are looked up in lists of keys, against a search from the list's beginning.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

// Lists of `count` keys, of which some are alike, and some are `edge` or its negative.
template <typename X, typename T>
void CheckLookUp(std::int64_t count, X edge) {
  CAPTURE(count, sizeof(X), sizeof(T));
  std::mt19937 random(static_cast<std::uint32_t>(count) + 1);
  const auto draw = [&] {
    const auto number = static_cast<X>(random() % static_cast<std::uint32_t>(2 * count + 3));
    if (random() % 7 != 0) return number;
    return random() % 2 == 0 ? edge : static_cast<X>(-edge);
  };
  std::vector<X> keys(static_cast<std::size_t>(count));
  std::generate(keys.begin(), keys.end(), draw);
  std::vector<T> values(keys.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 100);
  constexpr std::int64_t kElements = 700;
  std::vector<X> elements(kElements);
  std::generate(elements.begin(), elements.end(), draw);
  const T other{123};
  std::vector<T> expected;
  for (const X x : elements) {
    const auto is_same = [x](X key) { return key == x || (key != key && x != x); };
    const auto found = std::find_if(keys.begin(), keys.end(), is_same);
    expected.push_back(found == keys.end() ? other : values[static_cast<std::size_t>(found - keys.begin())]);
  }
  HostTensor x = HostTensor::Empty<X>({7, kElements / 7}), list = HostTensor::Empty<X>({count});
  HostTensor of_keys = HostTensor::Empty<T>({count}), of_others = HostTensor::Of<T>({1}, {other});
  std::copy(elements.begin(), elements.end(), x.elements<X>().begin());
  std::copy(keys.begin(), keys.end(), list.elements<X>().begin());
  std::copy(values.begin(), values.end(), of_keys.elements<T>().begin());
  HostTensor out = HostTensor::Empty<T>({7, kElements / 7});
  REQUIRE(Run("rewire.look_up", {&x, &list, &of_keys, &of_others, &out}) == "");
  CHECK(out.values<T>() == expected);
}

TEST_CASE("look_up gives the value of the first equal key, on every instruction set") {
  ForEachTarget([] {
    for (const std::int64_t count : {0, 1, 3, 8, 9, 40, 1000}) {
      CheckLookUp<std::int64_t, float>(count, std::int64_t{1} << 40);
      CheckLookUp<std::uint64_t, std::uint8_t>(count, ~std::uint64_t{5});
      CheckLookUp<std::int16_t, double>(count, -7);
      CheckLookUp<float, std::int64_t>(count, std::numeric_limits<float>::quiet_NaN());
      CheckLookUp<double, std::int16_t>(count, -0.0);
    }
  });
}

TEST_CASE("look_up refuses keys and values that do not fit each other") {
  HostTensor x = HostTensor::Of<float>({2}, {1, 2}), keys = HostTensor::Of<float>({2}, {1, 3});
  HostTensor values = HostTensor::Of<float>({3}, {1, 2, 3}), other = HostTensor::Of<float>({1}, {0});
  HostTensor out = HostTensor::Empty<float>({2});
  CHECK(Run("rewire.look_up", {&x, &keys, &values, &other, &out}) ==
        "ValueError: rewire.look_up: values has shape [3], expected [2]");
  CHECK(Run("rewire.look_up", {&x, &keys, &keys, &keys, &out}) ==
        "ValueError: rewire.look_up: other has shape [2], expected [1]");
  HostTensor integers = HostTensor::Of<std::int64_t>({2}, {1, 3});
  CHECK(Run("rewire.look_up", {&x, &integers, &keys, &other, &out}) ==
        "TypeError: rewire.look_up: keys has dtype i64, expected f32 as x");
}

}  // namespace
}  // namespace rewire::test
