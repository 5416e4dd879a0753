// SPDX-License-Identifier: Apache-2.0
// Attention, caches and rotary positions against sums in double precision.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

struct AttentionCase {
  std::int64_t batch = 1, heads = 1, groups = 1, length = 1, keys = 1, size = 8, value_size = 8;
  bool joined = false, keys_joined = false;
  std::vector<std::int64_t> begin = {}, lengths = {};
  Shape bias = {};
  double softcap = 0;
  std::int64_t left = -1, right = -1;
};

void CheckAttention(const AttentionCase& of) {
  CAPTURE(of.batch, of.heads, of.groups, of.length, of.keys, of.size, of.value_size, of.joined, of.left,
          of.right, of.keys_joined);
  HostTensor q = HostTensor::Random(of.joined ? Shape{of.batch, of.length, of.heads * of.size}
                                              : Shape{of.batch, of.heads, of.length, of.size},
                                    1);
  const auto of_keys = [&](std::int64_t size) {
    return of.keys_joined ? Shape{of.batch, of.keys, of.groups * size}
                          : Shape{of.batch, of.groups, of.keys, size};
  };
  HostTensor k = HostTensor::Random(of_keys(of.size), 2), v = HostTensor::Random(of_keys(of.value_size), 3);
  HostTensor begin = HostTensor::Of<std::int64_t>({std::ssize(of.begin)}, of.begin);
  HostTensor lengths = HostTensor::Of<std::int64_t>({std::ssize(of.lengths)}, of.lengths);
  HostTensor bias = of.bias.empty() ? HostTensor::Empty<float>({0}) : HostTensor::Random(of.bias, 4);
  HostTensor out = HostTensor::Empty<float>(of.joined ? Shape{of.batch, of.length, of.heads * of.value_size}
                                                      : Shape{of.batch, of.heads, of.length, of.value_size});
  AttributeList attributes = {
      {"left", of.left}, {"right", of.right}, {"softcap", of.softcap}, {"scale", 0.5}, {"heads", of.heads}};
  REQUIRE(Run("rewire.attention", {&q, &k, &v, &begin, &lengths, &bias, &out}, attributes) == "");
  const auto at = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t of_vector) {
    return static_cast<std::size_t>(
        (of.joined ? (b * of.length + i) * of.heads + h : (b * of.heads + h) * of.length + i) * of_vector);
  };
  const auto at_key = [&](std::int64_t b, std::int64_t group, std::int64_t j, std::int64_t of_vector) {
    return static_cast<std::size_t>(
        (of.keys_joined ? (b * of.keys + j) * of.groups + group : (b * of.groups + group) * of.keys + j) *
        of_vector);
  };
  const auto queries = q.values<float>(), keys = k.values<float>(), values = v.values<float>(),
             terms = bias.values<float>(), results = out.values<float>();
  const auto one = [](const std::vector<std::int64_t>& list, std::int64_t b) {
    return list[list.size() == 1 ? 0 : static_cast<std::size_t>(b)];
  };
  // Scores are sums of as many products.
  const double most_error = 1e-5 * std::max(1.0, static_cast<double>(of.size) / 256);
  for (std::int64_t b = 0; b < of.batch; ++b) {
    for (std::int64_t h = 0; h < of.heads; ++h) {
      for (std::int64_t i = 0; i < of.length; ++i) {
        const std::int64_t group = h / (of.heads / of.groups);
        const std::int64_t position = (of.begin.empty() ? 0 : one(of.begin, b)) + i;
        std::vector<double> sums(static_cast<std::size_t>(of.value_size));
        double total = 0;
        for (std::int64_t j = 0; j < of.keys; ++j) {
          if (!of.bias.empty() && of.bias.back() != 1 && j >= of.bias.back()) continue;
          if (!of.lengths.empty() && j >= one(of.lengths, b)) continue;
          if ((of.right >= 0 && j > position + of.right) || (of.left >= 0 && j < position - of.left))
            continue;
          const auto key = at_key(b, group, j, of.size);
          double score = 0;
          for (std::size_t d = 0; d < static_cast<std::size_t>(of.size); ++d)
            score +=
                static_cast<double>(queries[at(b, h, i, of.size) + d]) * static_cast<double>(keys[key + d]);
          score *= 0.5;
          if (of.softcap > 0) score = of.softcap * std::tanh(score / of.softcap);
          if (!of.bias.empty()) {
            const std::int64_t index[] = {b, h, i, j};
            std::int64_t place = 0;
            for (std::size_t a = 0; a < of.bias.size(); ++a)
              place = place * of.bias[a] + (of.bias[a] == 1 ? 0 : index[4 - of.bias.size() + a]);
            score += static_cast<double>(terms[static_cast<std::size_t>(place)]);
          }
          const double weight = std::exp(score);
          total += weight;
          const auto value = at_key(b, group, j, of.value_size);
          for (std::size_t d = 0; d < sums.size(); ++d)
            sums[d] += weight * static_cast<double>(values[value + d]);
        }
        for (std::size_t d = 0; d < sums.size(); ++d) {
          const double expected = total == 0 ? 0 : sums[d] / total;
          const auto given = static_cast<double>(results[at(b, h, i, of.value_size) + d]);
          if (!(std::fabs(given - expected) <= most_error))
            FAIL("batch " << b << ", head " << h << ", query " << i << ", element " << d << " is " << given
                          << ", expected " << expected);
        }
      }
    }
  }
}

TEST_CASE("attention: one query and many, heads that share keys, both forms") {
  const bool joined = GENERATE(false, true);
  const std::int64_t length = GENERATE(1, 2, 7, 40);
  CheckAttention({.heads = 2, .groups = 2, .length = length, .keys = 3, .joined = joined});
  CheckAttention({.batch = 2,
                  .heads = 6,
                  .groups = 2,
                  .length = length,
                  .keys = 130,
                  .size = 20,
                  .value_size = 37,
                  .joined = joined});
  CheckAttention({.heads = 8,
                  .groups = 1,
                  .length = length,
                  .keys = 65,
                  .size = 64,
                  .value_size = 64,
                  .joined = joined});
  CheckAttention({.heads = 1,
                  .groups = 1,
                  .length = length,
                  .keys = 5,
                  .size = 300,
                  .value_size = 260,
                  .joined = joined});
}

TEST_CASE("attention: keys and values with their heads joined") {
  const bool joined = GENERATE(false, true);
  const std::int64_t length = GENERATE(1, 5, 70);
  CheckAttention({.batch = 2,
                  .heads = 6,
                  .groups = 3,
                  .length = length,
                  .keys = 150,
                  .size = 12,
                  .value_size = 21,
                  .joined = joined,
                  .keys_joined = true,
                  .begin = {100},
                  .left = 60,
                  .right = 10});
  CheckAttention({.batch = 2,
                  .heads = 2,
                  .groups = 2,
                  .length = length,
                  .keys = 7,
                  .size = 300,
                  .value_size = 16,
                  .joined = joined,
                  .keys_joined = true});
}

TEST_CASE("attention: blocks of queries and keys, and what is left over of them") {
  const std::int64_t length = GENERATE(17, 64, 65, 150);
  const std::int64_t keys = GENERATE(1, 49, 129, 260);
  CheckAttention({.heads = 2, .groups = 2, .length = length, .keys = keys, .size = 33, .value_size = 50});
  CheckAttention({.heads = 2,
                  .groups = 1,
                  .length = length,
                  .keys = keys,
                  .size = 4,
                  .value_size = 3,
                  .begin = {-30},
                  .left = 90,
                  .right = 40});
}

TEST_CASE("attention: vectors so long that blocks have fewer queries") {
  for (const std::int64_t size : {300, 600, 1100, 2100})
    CheckAttention({.heads = 1, .groups = 1, .length = 40, .keys = 130, .size = size, .value_size = 2});
}

TEST_CASE("attention: positions, windows and lengths") {
  const std::int64_t length = GENERATE(1, 9);
  CheckAttention(
      {.batch = 2, .heads = 4, .groups = 2, .length = length, .keys = 100, .begin = {90, 3}, .right = 0});
  CheckAttention({.batch = 2,
                  .heads = 4,
                  .groups = 2,
                  .length = length,
                  .keys = 100,
                  .begin = {70},
                  .left = 5,
                  .right = 0});
  CheckAttention({.batch = 2, .heads = 1, .groups = 1, .length = length, .keys = 70, .lengths = {0, 66}});
  CheckAttention({.heads = 1, .groups = 1, .length = length, .keys = 10, .begin = {-4}, .right = 1});
  CheckAttention({.heads = 1, .groups = 1, .length = length, .keys = 10, .begin = {500}, .left = 3});
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  CheckAttention({.heads = 1, .groups = 1, .length = 1, .keys = 10, .begin = {kLast}, .right = 0});
}

TEST_CASE("attention: a bias that broadcasts, and scores that are capped") {
  const std::int64_t length = GENERATE(1, 6, 70);
  for (const Shape& bias :
       {Shape{length, 1}, Shape{2, 4, 1, 67}, Shape{2, 4, length, 1}, Shape{2, 4, length, 67}, Shape{67},
        Shape{4, 1, 1}, Shape{2, 1, length, 67}, Shape{1}, Shape{length, 30}})
    CheckAttention(
        {.batch = 2, .heads = 4, .groups = 2, .length = length, .keys = 67, .bias = bias, .softcap = 0.7});
}

TEST_CASE("attention: keys that a bias forbids, and queries that see none") {
  const float never = -std::numeric_limits<float>::infinity();
  for (const std::int64_t length : {1, 4}) {
    HostTensor q = HostTensor::Random({1, 1, length, 4}, 1), k = HostTensor::Random({1, 1, 3, 4}, 2);
    HostTensor v = HostTensor::Of<float>({1, 1, 3, 1}, {1, 2, 3}),
               none = HostTensor::Empty<std::int64_t>({0});
    HostTensor out = HostTensor::Empty<float>({1, 1, length, 1});
    HostTensor one = HostTensor::Of<float>({3}, {never, 0, never}), all = HostTensor::Of<float>({1}, {never});
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &one, &out}) == "");
    CHECK(out.values<float>() == std::vector<float>(static_cast<std::size_t>(length), 2));
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &all, &out}) == "");
    CHECK(out.values<float>() == std::vector<float>(static_cast<std::size_t>(length), 0));
  }
}

TEST_CASE("attention: NaN and infinite scores stay in their query") {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t length : {3, 40}) {
    constexpr std::int64_t kKeys = 300;
    HostTensor q = HostTensor::Of<float>({1, 1, length, 1}, std::vector<float>(length, 1.0F));
    HostTensor k = HostTensor::Random({1, 1, kKeys, 1}, 2), v = HostTensor::Random({1, 1, kKeys, 1}, 3);
    HostTensor none = HostTensor::Empty<std::int64_t>({0});
    HostTensor bias = HostTensor::Of<float>({length, kKeys}, std::vector<float>(length * kKeys, 0.0F));
    HostTensor out = HostTensor::Empty<float>({1, 1, length, 1});
    const auto terms = bias.elements<float>();
    terms[5] = nan;
    terms[kKeys + 290] = infinity;
    for (std::size_t j = 0; j < kKeys; ++j) terms[2 * kKeys + j] = j == 299 ? 0 : -infinity;
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &none, &none, &bias, &out}) == "");
    const auto results = out.values<float>();
    CHECK(std::isnan(results[0]));
    CHECK(std::isnan(results[1]));
    CHECK(results[2] == v.values<float>()[299]);
    for (std::size_t i = 3; i < results.size(); ++i) CHECK(std::isfinite(results[i]));
  }
}

TEST_CASE("attention: large scores do not overflow, and scale may be negative") {
  for (const std::int64_t length : {1, 20}) {
    HostTensor q = HostTensor::Of<float>({1, 1, length, 1}, std::vector<float>(length, 1000.0F));
    HostTensor k = HostTensor::Of<float>({1, 1, 3, 1}, {-1000, 999, 1000});
    HostTensor v = HostTensor::Of<float>({1, 1, 3, 1}, {1, 2, 4}),
               out = HostTensor::Empty<float>({1, 1, length, 1});
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &out}, {{"scale", 1.0}}) == "");
    CHECK(out.values<float>() == std::vector<float>(length, 4));
    REQUIRE(Run("rewire.attention", {&q, &k, &v, &out}, {{"scale", -1.0}}) == "");
    CHECK(out.values<float>() == std::vector<float>(length, 1));
  }
}

TEST_CASE("attention refuses joined keys that do not fit") {
  HostTensor q = HostTensor::Random({1, 2, 12}, 1), k = HostTensor::Random({1, 5, 8}, 2);
  HostTensor v = HostTensor::Random({1, 5, 8}, 3), out = HostTensor::Empty<float>({1, 2, 12});
  CHECK(Run("rewire.attention", {&q, &k, &v, &out}) ==
        "ValueError: rewire.attention: k has shape [1, 5, 8], which needs the attribute heads");
  for (const std::int64_t heads : {3, 5})
    CHECK(
        Run("rewire.attention", {&q, &k, &v, &out}, {{"heads", heads}}) ==
        "ValueError: rewire.attention: q has shape [1, 2, 12] and k [1, 5, 8], expected [B, H, L, D] or [B, "
        "L, H * D] and [B, S, G * D] with H a multiple of G");
  HostTensor apart = HostTensor::Random({1, 2, 5, 4}, 3), fitting = HostTensor::Random({1, 5, 4}, 3);
  CHECK(Run("rewire.attention", {&q, &fitting, &apart, &out}, {{"heads", 3}}) ==
        "ValueError: rewire.attention: v has shape [1, 2, 5, 4], expected rank 3");
  HostTensor short_v = HostTensor::Random({1, 4, 4}, 3);
  CHECK(Run("rewire.attention", {&q, &fitting, &short_v, &out}, {{"heads", 3}}) ==
        "ValueError: rewire.attention: v has shape [1, 4, 4], expected [1, 5, 4]");
}

TEST_CASE("attention refuses what does not fit") {
  HostTensor q = HostTensor::Random({1, 3, 2, 4}, 1), k = HostTensor::Random({1, 2, 5, 4}, 2);
  HostTensor v = HostTensor::Random({1, 2, 5, 4}, 3), out = HostTensor::Empty<float>({1, 3, 2, 4});
  CHECK(Run("rewire.attention", {&q, &k, &v, &out}) ==
        "ValueError: rewire.attention: q has shape [1, 3, 2, 4] and k [1, 2, 5, 4], expected [B, H, L, D] or "
        "[B, L, "
        "H * D] with H a multiple of k's second dimension");
  HostTensor four = HostTensor::Random({1, 4, 2, 4}, 1), bias = HostTensor::Random({6}, 4);
  HostTensor result = HostTensor::Empty<float>({1, 4, 2, 4}), none = HostTensor::Empty<std::int64_t>({0});
  CHECK(Run("rewire.attention", {&four, &k, &v, &none, &none, &bias, &result}) ==
        "ValueError: rewire.attention: bias has shape [6], expected one that broadcasts to [1, 4, 2, 5]");
  HostTensor two = HostTensor::Of<std::int64_t>({2}, {1, 2});
  CHECK(Run("rewire.attention", {&four, &k, &v, &two, &result}) ==
        "ValueError: rewire.attention: begin has shape [2], expected one element or [1]");
}

TEST_CASE("caches are appended to in place and apart") {
  const bool joined = GENERATE(false, true);
  HostTensor x = joined ? HostTensor::Of<float>({2, 2, 2}, {1, 5, 2, 6, 3, 7, 4, 8})
                        : HostTensor::Of<float>({2, 2, 2, 1}, {1, 2, 5, 6, 3, 4, 7, 8});
  HostTensor begin = HostTensor::Of<std::int64_t>({2}, {1, 0}), first = HostTensor::Of<std::int64_t>({}, {2});
  HostTensor cache = HostTensor::Of<float>({2, 2, 4, 1}, std::vector<float>(16, 9));
  HostTensor out = HostTensor::Empty<float>({2, 2, 4, 1});
  REQUIRE(Run("rewire.cache.append", {&cache, &x, &begin, &out}) == "");
  CHECK(out.values<float>() == std::vector<float>{9, 1, 2, 9, 9, 5, 6, 9, 3, 4, 9, 9, 7, 8, 9, 9});
  REQUIRE(Run("rewire.cache.append", {&cache, &x, &first, &cache}) == "");
  CHECK(cache.values<float>() == std::vector<float>{9, 9, 1, 2, 9, 9, 5, 6, 9, 9, 3, 4, 9, 9, 7, 8});
  HostTensor late = HostTensor::Of<std::int64_t>({2}, {1, 3}),
             early = HostTensor::Of<std::int64_t>({1}, {-1});
  CHECK(Run("rewire.cache.append", {&cache, &x, &late, &out}) ==
        "ValueError: rewire.cache.append: the cache has room for 4 positions, got 2 new ones from 3 on; "
        "cache has "
        "shape [2, 2, 4, 1]");
  CHECK(Run("rewire.cache.append", {&cache, &x, &early, &out}) ==
        "ValueError: rewire.cache.append: the cache has room for 4 positions, got 2 new ones from -1 on; "
        "cache has "
        "shape [2, 2, 4, 1]");
}

TEST_CASE("rotary positions turn halves or neighbors, and leave the rest") {
  HostTensor cosines = HostTensor::Of<float>({2, 1}, {1, 0}), sines = HostTensor::Of<float>({2, 1}, {0, 1});
  HostTensor positions = HostTensor::Of<std::int64_t>({1, 2}, {1, 0});
  HostTensor x = HostTensor::Of<float>({1, 2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  HostTensor out = HostTensor::Empty<float>({1, 2, 6});
  REQUIRE(Run("rewire.rotary", {&x, &cosines, &sines, &positions, &out}, {{"heads", 2}}) == "");
  const std::vector<float> turned = {-2, 1, 3, -5, 4, 6, 7, 8, 9, 10, 11, 12};
  CHECK(out.values<float>() == turned);
  REQUIRE(Run("rewire.rotary", {&x, &cosines, &sines, &positions, &x}, {{"heads", 2}, {"interleaved", 1}}) ==
          "");
  CHECK(x.values<float>() == turned);
  HostTensor apart = HostTensor::Of<float>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  HostTensor own_cosines = HostTensor::Of<float>({1, 2, 2}, {0, 1, 1, 0}),
             own_sines = HostTensor::Of<float>({1, 2, 2}, {1, 0, 0, 1});
  REQUIRE(Run("rewire.rotary", {&apart, &own_cosines, &own_sines, &apart}) == "");
  CHECK(apart.values<float>() == std::vector<float>{-3, 2, 1, 4, 5, -8, 7, 6});
  positions.elements<std::int64_t>()[1] = 2;
  CHECK(Run("rewire.rotary", {&x, &cosines, &sines, &positions, &out}, {{"heads", 2}}) ==
        "ValueError: rewire.rotary: positions has 2, expected 0 to 1");
  CHECK(Run("rewire.rotary", {&x, &cosines, &sines, &positions, &out}, {{"heads", 4}}) ==
        "ValueError: rewire.rotary: x has shape [1, 2, 6], which 4 heads do not divide");
}

}  // namespace
}  // namespace rewire::test
