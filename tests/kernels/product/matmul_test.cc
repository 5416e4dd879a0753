// SPDX-License-Identifier: Apache-2.0
// Products of matrices that are both computed: batches, groups of rows, panels and parts of the depth
// against sums in double precision, and integers against wrapping sums.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

struct Batches {
  Shape of_a, of_b;  // outer axes; each is broadcast to `of_out`
  Shape of_out;
};

Shape With(Shape outer, std::int64_t rows, std::int64_t columns) {
  outer.push_back(rows);
  outer.push_back(columns);
  return outer;
}

// The element of a tensor with the outer axes `own` that element `index` of the axes `all` reads.
std::int64_t Batch(const Shape& own, const Shape& all, std::int64_t index) {
  std::int64_t at = 0, step = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t axis = all.size() - 1 - i;
    const std::int64_t here = index % all[axis];
    index /= all[axis];
    if (i >= own.size()) continue;
    const std::int64_t size = own[own.size() - 1 - i];
    if (size != 1) at += here * step;
    step *= size;
  }
  return at;
}

void CheckProduct(const Batches& batches, std::int64_t m, std::int64_t n, std::int64_t k) {
  INFO("[" << m << ", " << k << "] by [" << k << ", " << n << "]");
  HostTensor a = HostTensor::Random(With(batches.of_a, m, k), 1);
  HostTensor b = HostTensor::Random(With(batches.of_b, k, n), 2);
  HostTensor out = HostTensor::Empty<float>(With(batches.of_out, m, n));
  for (float& value : out.elements<float>()) value = NAN;  // nothing is added to what is there
  REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
  const std::vector<float> as = a.values<float>(), bs = b.values<float>(), outs = out.values<float>();
  for (std::int64_t at = 0; at < out.size(); ++at) {
    const std::int64_t batch = at / (m * n), i = at / n % m, j = at % n;
    const std::int64_t left = (Batch(batches.of_a, batches.of_out, batch) * m + i) * k;
    const std::int64_t right = Batch(batches.of_b, batches.of_out, batch) * k * n + j;
    double sum = 0;
    for (std::int64_t l = 0; l < k; ++l)
      sum += double{as[static_cast<std::size_t>(left + l)]} *
             double{bs[static_cast<std::size_t>(right + l * n)]};
    const double found = outs[static_cast<std::size_t>(at)];
    if (!(std::fabs(found - sum) <= 1e-4 * (1 + std::fabs(sum))))
      FAIL("element " << at << " is " << found << ", expected " << sum);
  }
}

TEST_CASE("products of computed matrices of all sizes are right") {
  // Panels that are whole, half, and neither; matrices that are panels as they lie; and depths of several
  // parts, for both.
  for (const std::int64_t columns : {1, 5, 16, 17, 31, 32, 33, 48, 70}) {
    for (const std::int64_t depth : {40, 256, 257, 600}) CheckProduct({}, 9, columns, depth);
  }
  // The fewest rows, odd tiles, and groups of rows.
  for (const std::int64_t rows : {4, 63, 64, 65, 129, 300}) CheckProduct({}, rows, 40, 70);
}

TEST_CASE("batches of computed matrices broadcast") {
  CheckProduct({{3}, {3}, {3}}, 20, 33, 40);
  CheckProduct({{}, {5}, {5}}, 32, 16, 32);            // one left matrix
  CheckProduct({{5}, {}, {5}}, 32, 40, 32);            // one right matrix: more rows
  CheckProduct({{2, 1}, {1, 3}, {2, 3}}, 10, 40, 20);  // each by each
  CheckProduct({{2, 3}, {3}, {2, 3}}, 10, 40, 20);     // fewer axes
  CheckProduct({{2, 1, 2}, {3, 1}, {2, 3, 2}}, 65, 32, 20);
  CheckProduct({{40}, {40}, {40}}, 270, 5, 16);  // many batches of many rows
  CheckProduct({{4}, {4}, {4}}, 3, 5, 7);        // too small to be worth it
}

TEST_CASE("a product of many terms is the sum of all, and of none is zero") {
  HostTensor a = HostTensor::Empty<float>({4, 1000}), b = HostTensor::Empty<float>({1000, 32});
  for (float& value : a.elements<float>()) value = 1;
  for (float& value : b.elements<float>()) value = 2;
  HostTensor out = HostTensor::Empty<float>({4, 32});
  REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
  for (const float value : out.values<float>()) REQUIRE(value == 2000);
  HostTensor no_columns = HostTensor::Empty<float>({4, 0}), no_rows = HostTensor::Empty<float>({0, 32});
  REQUIRE(Run("rewire.matmul", {&no_columns, &no_rows, &out}) == "");
  for (const float value : out.values<float>()) REQUIRE(value == 0);
}

template <typename T>
void CheckColumn(std::int64_t batches, std::int64_t m, std::int64_t k) {
  CAPTURE(sizeof(T), batches, m, k);
  HostTensor a = HostTensor::Empty<T>({batches, m, k}), b = HostTensor::Empty<T>({k});
  HostTensor out = HostTensor::Empty<T>({batches, m});
  std::mt19937 random(5);
  for (HostTensor* each : {&a, &b}) {
    // Large ones, whose products wrap.
    for (T& value : each->elements<T>()) value = static_cast<T>(random() * std::uint64_t{0x9E3779B97F4A7C15});
  }
  REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
  std::vector<T> expected;
  for (std::int64_t row = 0; row < batches * m; ++row) {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      sum += static_cast<std::uint64_t>(a.elements<T>()[static_cast<std::size_t>(row * k + i)]) *
             static_cast<std::uint64_t>(b.elements<T>()[static_cast<std::size_t>(i)]);
    }
    expected.push_back(static_cast<T>(sum));
  }
  CHECK(out.values<T>() == expected);
}

TEST_CASE("many rows by few columns of few terms are right") {
  for (const auto& [columns, depth] : {std::pair(2, 1), std::pair(4, 3), std::pair(8, 8), std::pair(9, 8)}) {
    CAPTURE(columns, depth);
    const std::int64_t rows = 300;
    HostTensor a = HostTensor::Empty<std::int32_t>({rows, depth}),
               b = HostTensor::Empty<std::int32_t>({depth, columns});
    for (std::int64_t i = 0; i < a.size(); ++i)
      a.elements<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 - 500);
    for (std::int64_t i = 0; i < b.size(); ++i)
      b.elements<std::int32_t>()[i] = static_cast<std::int32_t>(i * 31 - 40);
    HostTensor out = HostTensor::Empty<std::int32_t>({rows, columns});
    REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < out.size(); ++i) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += std::int64_t{a.elements<std::int32_t>()[i / columns * depth + k]} *
               b.elements<std::int32_t>()[k * columns + i % columns];
      }
      wrong += out.elements<std::int32_t>()[i] == static_cast<std::int32_t>(sum) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows of integers by one column wrap, on every instruction set") {
  ForEachTarget([] {
    for (const std::int64_t k : {1, 7, 16, 77, 300}) {
      CheckColumn<std::int32_t>(3, 5, k);
      CheckColumn<std::int64_t>(1, 40, k);
    }
  });
}

}  // namespace
}  // namespace rewire::test
