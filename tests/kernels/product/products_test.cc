// SPDX-License-Identifier: Apache-2.0
// Matrix products of every kind against sums in double precision.
#include <hwy/targets.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/kernels/cpu/product/gemm_micro_kernel.h"
#include "rewire/tests/kernels/close.h"
#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using kernel::cpu::BestMicroKernel;
using kernel::cpu::ChooseMicroKernel;
using kernel::cpu::kMaxMicroWidth;
using kernel::cpu::kMicroRows;

// The plain product of [m, k] and [k, n]; `at_a(i, l)` and `at_b(l, j)` are places in memory.
template <typename A, typename B>
std::vector<double> Product(std::int64_t m, std::int64_t n, std::int64_t k, const HostTensor& a,
                            const A& at_a, const HostTensor& b, const B& at_b) {
  const auto as = a.values<float>();
  const auto bs = b.values<float>();
  std::vector<double> c;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(as[static_cast<std::size_t>(at_a(i, l))]) *
               static_cast<double>(bs[static_cast<std::size_t>(at_b(l, j))]);
      }
      c.push_back(sum);
    }
  }
  return c;
}

template <typename T>
void CheckMicroKernel(bool narrow = false) {
  auto micro = ChooseMicroKernel<T>();
  if (narrow && micro.run_narrow == nullptr) return;
  if (narrow) micro.run = micro.run_narrow;
  REQUIRE(micro.width > 0);
  REQUIRE(micro.width <= kMaxMicroWidth);
  const auto width = static_cast<std::size_t>(micro.width);
  for (std::size_t depth : {0u, 1u, 2u, 7u, 64u, 256u}) {
    // Rows have places even if they have no elements.
    std::vector<T> a((depth + 1) * kMicroRows), b(depth * width),
        tile(kMicroRows * width, static_cast<T>(-1));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(static_cast<int>(i * 7 % 13) - 6);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(static_cast<int>(i * 5 % 11) - 5);
    // Rows side by side for each k, and rows one behind the other.
    for (const auto& [row, step] : {std::pair<std::size_t, std::size_t>{1, kMicroRows}, {depth, 1}}) {
      const T* rows[kMicroRows];
      for (std::size_t i = 0; i < kMicroRows; ++i) rows[i] = a.data() + i * row;
      micro.run(static_cast<std::int64_t>(depth), rows, static_cast<std::int64_t>(step), b.data(),
                tile.data());
      for (std::size_t i = 0; i < kMicroRows; ++i) {
        for (std::size_t j = 0; j < width; ++j) {
          T sum = 0;
          for (std::size_t k = 0; k < depth; ++k) sum += a[i * row + k * step] * b[k * width + j];
          if (tile[i * width + j] != sum)
            FAIL("depth " << depth << ", step " << step << ", element " << i << ", " << j);
        }
      }
    }
  }
}

TEST_CASE("the micro-kernel of every instruction set multiplies whole numbers exactly") {
  int checked = 0;
  for (std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    INFO(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    CheckMicroKernel<float>();
    CheckMicroKernel<double>();
    CheckMicroKernel<std::uint64_t>();
    CheckMicroKernel<std::uint64_t>(true);
    ++checked;
  }
  CHECK(checked > 0);
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  CHECK(BestMicroKernel<float>().width == ChooseMicroKernel<float>().width);
}

TEST_CASE("gemm multiplies, transposes, scales and adds") {
  const std::int64_t sizes[][3] = {{1, 1, 1},     {1, 5, 3},     {3, 1, 7},    {5, 4, 1},     {6, 16, 8},
                                   {7, 33, 19},   {13, 65, 300}, {64, 64, 64}, {100, 3, 257}, {2, 1100, 40},
                                   {50, 1030, 9}, {1, 300, 500}, {0, 3, 4},    {3, 0, 4},     {3, 4, 0}};
  for (const auto& [m, n, k] : sizes) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const bool ta = (transposed & 1) != 0;
      const bool tb = (transposed & 2) != 0;
      CAPTURE(m, n, k, ta, tb);
      HostTensor a = HostTensor::Random(ta ? Shape{k, m} : Shape{m, k}, 1);
      HostTensor b = HostTensor::Random(tb ? Shape{n, k} : Shape{k, n}, 2);
      HostTensor c = HostTensor::Random({n}, 3);
      HostTensor out = HostTensor::Empty<float>({m, n});
      const AttributeList attributes = {
          {"transA", ta ? 1 : 0}, {"transB", tb ? 1 : 0}, {"alpha", 0.5}, {"beta", 2.0}};
      REQUIRE(Run("rewire.gemm", {&a, &b, &c, &out}, attributes) == "");
      auto expected = Product(
          m, n, k, a, [&, m = m, k = k](auto i, auto l) { return ta ? l * m + i : i * k + l; }, b,
          [&, n = n, k = k](auto l, auto j) { return tb ? j * k + l : l * n + j; });
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] =
            0.5 * expected[i] + 2 * static_cast<double>(c.values<float>()[i % static_cast<std::size_t>(n)]);
      }
      CheckClose(out, expected);
      // A term for each row in place of one for each column.
      HostTensor of_rows = HostTensor::Random({m, 1}, 4);
      REQUIRE(Run("rewire.gemm", {&a, &b, &of_rows, &out}, attributes) == "");
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(n), column = i % static_cast<std::size_t>(n);
        expected[i] += 2 * (static_cast<double>(of_rows.values<float>()[row]) -
                            static_cast<double>(c.values<float>()[column]));
      }
      CheckClose(out, expected);
    }
  }
}

TEST_CASE("dense takes either order of weights and any batch") {
  HostTensor x = HostTensor::Random({2, 3, 10}, 1);
  HostTensor w = HostTensor::Random({7, 10}, 2);
  HostTensor bias = HostTensor::Random({7}, 3);
  HostTensor out = HostTensor::Empty<float>({2, 3, 7});
  REQUIRE(Run("rewire.dense", {&x, &w, &bias, &out}) == "");
  auto expected = Product(
      6, 7, 10, x, [](auto i, auto l) { return i * 10 + l; }, w, [](auto l, auto j) { return j * 10 + l; });
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] += static_cast<double>(bias.values<float>()[i % 7]);
  CheckClose(out, expected);
  HostTensor plain = HostTensor::Random({10, 4}, 4);
  HostTensor four = HostTensor::Empty<float>({2, 3, 4});
  REQUIRE(Run("rewire.dense", {&x, &plain, &four}, {{"transpose_w", 0}}) == "");
  CheckClose(four, Product(
                       6, 4, 10, x, [](auto i, auto l) { return i * 10 + l; }, plain,
                       [](auto l, auto j) { return l * 4 + j; }));
  CHECK(Run("rewire.dense", {&x, &plain, &four}) ==
        "ValueError: rewire.dense: x has shape [2, 3, 10], expected 4 as its last dimension as w of shape "
        "[10, 4]");
}

TEST_CASE("matmul broadcasts batches as numpy does") {
  struct Case {
    Shape a, b, out;
  };
  const Case cases[] = {
      {{3, 4}, {4, 5}, {3, 5}},
      {{4}, {4, 5}, {5}},
      {{3, 4}, {4}, {3}},
      {{4}, {4}, {}},
      {{2, 3, 4}, {4, 5}, {2, 3, 5}},
      {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
      {{2, 1, 3, 4}, {5, 4, 6}, {2, 5, 3, 6}},
      {{1, 3, 4}, {2, 7, 4, 2}, {2, 7, 3, 2}},
      {{2, 3, 4}, {2, 4}, {2, 3}},
      {{0, 3, 4}, {4, 5}, {0, 3, 5}},
      {{2, 40, 33}, {2, 33, 50}, {2, 40, 50}},
  };
  for (const Case& c : cases) {
    if (c.b == Shape{2, 4}) continue;  // refused below
    CAPTURE(c.a, c.b);
    HostTensor a = HostTensor::Random(c.a, 1);
    HostTensor b = HostTensor::Random(c.b, 2);
    HostTensor out = HostTensor::Empty<float>(c.out);
    REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
    const std::int64_t k = c.a.back();
    const std::int64_t m = c.a.size() == 1 ? 1 : c.a[c.a.size() - 2];
    const std::int64_t n = c.b.size() == 1 ? 1 : c.b.back();
    // The matrices of a batch position, found digit by digit.
    const std::size_t batch_rank = std::max(c.a.size(), c.b.size()) - 2;
    const auto matrix_of = [&](const Shape& shape, std::int64_t batch) {
      std::int64_t index = 0;
      std::int64_t step = 1;
      if (shape.size() < 2 || batch_rank > 8) return index;
      for (std::size_t back = 0; back < batch_rank; ++back) {
        const std::int64_t whole = c.out[batch_rank - 1 - back];
        const std::int64_t digit = batch % whole;
        batch /= whole;
        if (back + 2 >= shape.size()) continue;
        const std::int64_t own = shape[shape.size() - 3 - back];
        if (own != 1) index += digit * step;
        step *= own;
      }
      return index;
    };
    std::vector<double> expected;
    const std::int64_t batches = m * n == 0 ? 0 : out.size() / (m * n);
    for (std::int64_t i = 0; i < batches; ++i) {
      const std::int64_t first_a = matrix_of(c.a, i) * m * k;
      const std::int64_t first_b = matrix_of(c.b, i) * k * n;
      const auto part = Product(
          m, n, k, a, [&](auto r, auto l) { return first_a + r * k + l; }, b,
          [&](auto l, auto j) { return first_b + l * n + j; });
      expected.insert(expected.end(), part.begin(), part.end());
    }
    CheckClose(out, expected);
  }
  HostTensor a = HostTensor::Random({2, 3}, 1);
  HostTensor b = HostTensor::Random({2, 3}, 1);
  HostTensor out = HostTensor::Empty<float>({2, 3});
  CHECK(Run("rewire.matmul", {&a, &b, &out}) ==
        "ValueError: rewire.matmul: a has shape [2, 3] and b [2, 3]: the inner dimensions 3 and 2 differ");
  HostTensor scalar = HostTensor::Random({}, 1);
  CHECK(Run("rewire.matmul", {&scalar, &b, &out}) ==
        "ValueError: rewire.matmul: a has shape [] and b [2, 3], expected rank 1 or more");
}

TEST_CASE("integer products wrap, and 8-bit ones take their zeros off") {
  HostTensor a = HostTensor::Of<std::int32_t>({1, 2}, {0x7FFFFFFF, 2});
  HostTensor b = HostTensor::Of<std::int32_t>({2, 1}, {2, 5});
  HostTensor out = HostTensor::Empty<std::int32_t>({1, 1});
  REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
  CHECK(out.values<std::int32_t>() == std::vector<std::int32_t>{8});
  HostTensor left = HostTensor::Of<std::uint8_t>({2, 3}, {11, 7, 3, 10, 6, 2});
  HostTensor right = HostTensor::Of<std::int8_t>({3, 2}, {1, 4, 2, 5, 3, 6});
  HostTensor rows = HostTensor::Of<std::uint8_t>({2}, {12, 10});
  HostTensor columns = HostTensor::Of<std::int8_t>({2}, {0, 1});
  HostTensor sums = HostTensor::Empty<std::int32_t>({2, 2});
  REQUIRE(Run("rewire.matmul_integer", {&left, &right, &rows, &columns, &sums}) == "");
  CHECK(sums.values<std::int32_t>() == std::vector<std::int32_t>{-38, -68, -32, -56});
  HostTensor three = HostTensor::Of<std::uint8_t>({3}, {1, 2, 3});
  CHECK(Run("rewire.matmul_integer", {&left, &right, &three, &columns, &sums}) ==
        "ValueError: rewire.matmul_integer: a_zero has shape [3], expected one element or [2] as axis 0 of a "
        "with "
        "shape [2, 3]");
}

// numpy's matmul of bytes less their zeros, in the order in which they are defined.
template <typename A, typename B>
void CheckByteProduct(const Shape& a_shape, const Shape& b_shape, const Shape& shape, std::int64_t a_zeros,
                      std::int64_t b_zeros) {
  CAPTURE(a_shape, b_shape, a_zeros, b_zeros);
  const auto filled = [](const Shape& dims, std::size_t seed, auto element) {
    using T = decltype(element);
    std::size_t count = 1;
    for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>((i + seed) * 7919 % 256);
    return HostTensor::Of<T>(dims, values);
  };
  HostTensor a = filled(a_shape, 1, A()), b = filled(b_shape, 2, B());
  HostTensor a_zero = filled({a_zeros}, 3, A()), b_zero = filled({b_zeros}, 4, B());
  HostTensor out = HostTensor::Empty<std::int32_t>(shape);
  REQUIRE(Run("rewire.matmul_integer", {&a, &b, &a_zero, &b_zero, &out}) == "");
  const std::int64_t m = shape[shape.size() - 2], n = shape.back(), k = a_shape.back();
  const auto matrices = [](const Shape& dims) {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 2 < dims.size(); ++i) count *= dims[i];
    return count;
  };
  const std::int64_t all = matrices(shape);
  const auto zero_of = [](HostTensor& zeros, std::int64_t i, auto element) -> std::int32_t {
    return zeros.size() == 0 ? 0 : zeros.elements<decltype(element)>()[zeros.size() == 1 ? 0 : i];
  };
  for (std::int64_t i = 0; i < all * m * n; ++i) {
    const std::int64_t matrix = i / (m * n), row = i / n % m, column = i % n;
    const std::int64_t left = (matrix % matrices(a_shape) * m + row) * k;
    const std::int64_t right = matrix % matrices(b_shape) * k * n + column;
    std::int32_t sum = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int32_t x = a.elements<A>()[left + j] - zero_of(a_zero, row, A());
      sum += x * (b.elements<B>()[right + j * n] - zero_of(b_zero, column, B()));
    }
    REQUIRE(out.elements<std::int32_t>()[i] == sum);
  }
}

TEMPLATE_TEST_CASE("products of bytes that only the run knows, of all ranks, depths and zeros", "",
                   (std::pair<std::uint8_t, std::uint8_t>), (std::pair<std::uint8_t, std::int8_t>),
                   (std::pair<std::int8_t, std::uint8_t>), (std::pair<std::int8_t, std::int8_t>)) {
  using A = typename TestType::first_type;
  using B = typename TestType::second_type;
  for (const std::int64_t a_zeros : {0, 1, 5}) {
    for (const bool each : {false, true}) {
      for (const std::int64_t k : {1, 3, 4, 18}) {
        for (const std::int64_t n : {1, 7, 16, 33, 70}) {
          const std::int64_t b_zeros = each ? n : a_zeros % 2;
          CheckByteProduct<A, B>({5, k}, {k, n}, {5, n}, a_zeros, b_zeros);
          CheckByteProduct<A, B>({3, 5, k}, {k, n}, {3, 5, n}, a_zeros, b_zeros);
          CheckByteProduct<A, B>({2, 3, 5, k}, {3, k, n}, {2, 3, 5, n}, a_zeros, b_zeros);
          CheckByteProduct<A, B>({5, k}, {2, 3, k, n}, {2, 3, 5, n}, a_zeros, b_zeros);
        }
      }
    }
  }
  CheckByteProduct<A, B>({2, 5, 0}, {2, 0, 3}, {2, 5, 3}, 1, 1);
  CheckByteProduct<A, B>({0, 5, 2}, {0, 2, 3}, {0, 5, 3}, 1, 1);
  CheckByteProduct<A, B>({1, 130, 300}, {1, 300, 40}, {1, 130, 40}, 130, 40);
  CheckByteProduct<A, B>({2, 600, 9}, {9, 40}, {2, 600, 40}, 1, 40);  // rows in several blocks
}

TEST_CASE("products of 64-bit integers that fit 32 bits, and of others") {
  const std::int64_t m = 40, k = 33, n = 50;
  for (const std::int64_t largest :
       {std::int64_t{7}, std::int64_t{0x7FFFFFFF}, std::int64_t{0x80000000}, std::int64_t{1} << 62}) {
    for (const bool in_a : {false, true}) {
      CAPTURE(largest, in_a);
      HostTensor a = HostTensor::Empty<std::int64_t>({m, k}), b = HostTensor::Empty<std::int64_t>({k, n});
      HostTensor out = HostTensor::Empty<std::int64_t>({m, n});
      for (std::int64_t i = 0; i < m * k; ++i) a.elements<std::int64_t>()[i] = i * 7919 % 2001 - 1000;
      for (std::int64_t i = 0; i < k * n; ++i) b.elements<std::int64_t>()[i] = i * 104729 % 2001 - 1000;
      HostTensor& wide = in_a ? a : b;
      wide.elements<std::int64_t>()[wide.size() - 1] = largest;
      wide.elements<std::int64_t>()[wide.size() / 2] = -largest - 1;
      REQUIRE(Run("rewire.matmul", {&a, &b, &out}) == "");
      for (std::int64_t i = 0; i < m * n; ++i) {
        std::uint64_t sum = 0;
        for (std::int64_t j = 0; j < k; ++j)
          sum += static_cast<std::uint64_t>(a.elements<std::int64_t>()[i / n * k + j]) *
                 static_cast<std::uint64_t>(b.elements<std::int64_t>()[j * n + i % n]);
        REQUIRE(out.elements<std::int64_t>()[i] == static_cast<std::int64_t>(sum));
      }
    }
  }
}

TEST_CASE("determinants") {
  HostTensor x = HostTensor::Of<double>(
      {3, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 10, 0, 1, 0, 1, 0, 0, 0, 0, 2, 1, 2, 3, 2, 4, 6, 1, 1, 1});
  HostTensor out = HostTensor::Empty<double>({3});
  REQUIRE(Run("rewire.det", {&x, &out}) == "");
  CHECK(out.values<double>()[0] == Approx(-3));
  CHECK(out.values<double>()[1] == Approx(-2));
  CHECK(out.values<double>()[2] == 0);
  HostTensor wide = HostTensor::Random({2, 3}, 1);
  HostTensor none = HostTensor::Empty<float>({});
  CHECK(Run("rewire.det", {&wide, &none}) ==
        "ValueError: rewire.det: x has shape [2, 3], expected [..., N, N]");
}

}  // namespace
}  // namespace rewire::test
