// SPDX-License-Identifier: Apache-2.0
// Attention with a mask, and scores that hide keys.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kLowestFloat = std::numeric_limits<float>::lowest();

// True but for each third element.
HostTensor MaskOf(const Shape& shape) {
  std::size_t size = 1;
  for (const std::int64_t dim : shape) size *= static_cast<std::size_t>(dim);
  std::vector<bool> seen;
  for (std::size_t i = 0; i < size; ++i) seen.push_back(i % 3 != 1);
  return HostTensor::Of<bool>(shape, seen);
}

// The bias that does what the mask does.
HostTensor BiasOf(HostTensor& mask, const Shape& shape) {
  std::vector<float> terms;
  for (const bool seen : mask.values<bool>()) terms.push_back(seen ? 0 : kNever);
  return HostTensor::Of<float>(shape, terms);
}

TEST_CASE("attention: a mask that broadcasts is as good as a bias") {
  // A single query, few, and more than a block; more keys than a block has.
  const std::int64_t length = GENERATE(1, 6, 70);
  constexpr std::int64_t kKeys = 300;
  HostTensor q = HostTensor::Random({2, 4, length, 8}, 1), k = HostTensor::Random({2, 2, kKeys, 8}, 2);
  HostTensor v = HostTensor::Random({2, 2, kKeys, 8}, 3), none = HostTensor::Empty<std::int64_t>({0});
  HostTensor expected = HostTensor::Empty<float>({2, 4, length, 8}), out = expected;
  for (const Shape& shape : {Shape{kKeys}, Shape{2, 1, 1, kKeys}, Shape{4, length, 1}, Shape{length, kKeys},
                             Shape{2, 4, length, kKeys}, Shape{1}, Shape{length, 30}}) {
    CAPTURE(shape);
    HostTensor mask = MaskOf(shape), bias = BiasOf(mask, shape);
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &bias, &expected}, {{"softcap", 0.7}}) == "");
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &mask, &out}, {{"softcap", 0.7}}) ==
            "");
    CHECK(out.values<float>() == expected.values<float>());
  }
}

TEST_CASE("attention: a bias is added to what a mask has chosen") {
  for (const std::int64_t length : {1, 40}) {
    HostTensor q = HostTensor::Of<float>({1, 1, length, 1}, std::vector<float>(length, 1.0F));
    HostTensor k = HostTensor::Of<float>({1, 1, 3, 1}, {1, 2, 3}),
               out = HostTensor::Empty<float>({1, 1, length, 1});
    HostTensor v = HostTensor::Of<float>({1, 1, 3, 1}, {10, 20, 30}),
               none = HostTensor::Empty<std::int64_t>({0});
    HostTensor bias = HostTensor::Of<float>({3}, {2, 100, 0}),
               mask = HostTensor::Of<bool>({3}, {true, false, true});
    // The scores are 1 + 2, -97 + 100, 3 + 0.
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &bias, &mask, &out},
                {{"scale", 1.0}, {"hidden", -97.0}}) == "");
    for (const float result : out.values<float>()) CHECK(result == Approx(20));
  }
}

TEST_CASE("attention: where all keys are hidden by the lowest number, values count equally") {
  for (const std::int64_t length : {1, 40}) {
    HostTensor q = HostTensor::Random({1, 1, length, 4}, 1), k = HostTensor::Random({1, 1, 3, 4}, 2);
    HostTensor v = HostTensor::Of<float>({1, 1, 3, 1}, {1, 2, 6}),
               none = HostTensor::Empty<std::int64_t>({0});
    HostTensor out = HostTensor::Empty<float>({1, 1, length, 1});
    HostTensor bias = HostTensor::Of<float>({1}, {kLowestFloat}), mask = HostTensor::Of<bool>({1}, {false});
    const AttributeList hidden = {{"hidden", double{kLowestFloat}}};
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &bias, &out}) == "");
    for (const float result : out.values<float>()) CHECK(result == Approx(3));
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &mask, &out}, hidden) == "");
    for (const float result : out.values<float>()) CHECK(result == Approx(3));
    // Infinitely low scores stay so.
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &mask, &out}) == "");
    CHECK(out.values<float>() == std::vector<float>(static_cast<std::size_t>(length), 0));
    mask = HostTensor::Of<bool>({3}, {false, true, false});
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &mask, &out}, hidden) == "");
    CHECK(out.values<float>() == std::vector<float>(static_cast<std::size_t>(length), 2));
  }
}

TEST_CASE("attention: scores that a mask hides may be anything") {
  const float odd =
      GENERATE(std::numeric_limits<float>::infinity(), kNever, std::numeric_limits<float>::quiet_NaN());
  for (const std::int64_t length : {1, 5, 40}) {
    HostTensor q = HostTensor::Of<float>({1, 1, length, 1}, std::vector<float>(length, 1.0F));
    HostTensor k = HostTensor::Of<float>({1, 1, 3, 1}, {odd, 0, odd}),
               out = HostTensor::Empty<float>({1, 1, length, 1});
    HostTensor v = HostTensor::Of<float>({1, 1, 3, 1}, {1, 2, 4}),
               none = HostTensor::Empty<std::int64_t>({0});
    HostTensor mask = HostTensor::Of<bool>({3}, {false, true, false});
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &mask, &out}) == "");
    CHECK(out.values<float>() == std::vector<float>(static_cast<std::size_t>(length), 2));
  }
}

TEST_CASE("attention: biases and masks that are too short or of another type") {
  HostTensor q = HostTensor::Random({1, 1, 2, 4}, 1), k = HostTensor::Random({1, 1, 5, 4}, 2);
  HostTensor v = HostTensor::Random({1, 1, 5, 4}, 3), out = HostTensor::Empty<float>({1, 1, 2, 4});
  HostTensor none = HostTensor::Empty<std::int64_t>({0}), bias = HostTensor::Random({4}, 4);
  HostTensor one = HostTensor::Random({1}, 4), mask = MaskOf({2, 4}), wide = MaskOf({6}),
             single = MaskOf({2, 1});
  CHECK(Run("rewire.attention", {&q, &k, &v, &none, &none, &bias, &mask, &out}) == "");
  const AttributeList strict = {{"strict", 1}};
  CHECK(Run("rewire.attention", {&q, &k, &v, &none, &none, &one, &single, &out}, strict) == "");
  CHECK(Run("rewire.attention", {&q, &k, &v, &none, &none, &bias, &out}, strict) ==
        "ValueError: rewire.attention: bias has shape [4], expected one that broadcasts to [1, 1, 2, 5]");
  CHECK(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &mask, &out}, strict) ==
        "ValueError: rewire.attention: mask has shape [2, 4], expected one that broadcasts to [1, 1, 2, 5]");
  CHECK(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &wide, &out}) ==
        "ValueError: rewire.attention: mask has shape [6], expected one that broadcasts to [1, 1, 2, 5]");
  CHECK(Run("rewire.attention", {&q, &k, &v, &none, &none, &none, &one, &out}) ==
        "TypeError: rewire.attention: mask has dtype f32, expected bool");
}

}  // namespace
}  // namespace rewire::test
