// SPDX-License-Identifier: Apache-2.0
// Matrix products of every kind against sums in double precision.
#include <hwy/targets.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "rewire/kernels/cpu/product/gemm_micro_kernel.h"
#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using kernel::cpu::BestMicroKernel;
using kernel::cpu::ChooseMicroKernel;
using kernel::cpu::kMaxMicroWidth;
using kernel::cpu::kMicroRows;

void CheckClose(const HostTensor& out, const std::vector<double>& expected, double tolerance = 1e-4) {
  const auto values = out.values<float>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::fabs(static_cast<double>(values[i]) - expected[i]) <=
          tolerance * (1 + std::fabs(expected[i]))))
      FAIL("element " << i << " is " << values[i] << ", expected " << expected[i]);
  }
}

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
void CheckMicroKernel() {
  const auto micro = ChooseMicroKernel<T>();
  REQUIRE(micro.width > 0);
  REQUIRE(micro.width <= kMaxMicroWidth);
  const auto width = static_cast<std::size_t>(micro.width);
  for (std::size_t depth : {0u, 1u, 2u, 7u, 64u, 256u}) {
    std::vector<T> a(depth * kMicroRows), b(depth * width), tile(kMicroRows * width, T{-1});
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(static_cast<int>(i * 7 % 13) - 6);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(static_cast<int>(i * 5 % 11) - 5);
    micro.run(static_cast<std::int64_t>(depth), a.data(), b.data(), tile.data());
    for (std::size_t i = 0; i < kMicroRows; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        T sum = 0;
        for (std::size_t k = 0; k < depth; ++k) sum += a[k * kMicroRows + i] * b[k * width + j];
        if (tile[i * width + j] != sum) FAIL("depth " << depth << ", element " << i << ", " << j);
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

// Einstein summation by the definition: a sum over all values of all labels.
std::vector<double> NaiveEinsum(const std::string& operands, const std::string& result,
                                const std::vector<HostTensor*>& tensors) {
  std::vector<std::string> terms(1);
  for (char c : operands) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::map<char, std::int64_t> sizes;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (std::size_t i = 0; i < terms[t].size(); ++i) sizes[terms[t][i]] = tensors[t]->shape()[i];
  }
  std::int64_t results = 1;
  for (char c : result) results *= sizes[c];
  std::vector<double> sums(static_cast<std::size_t>(results), 0);
  std::map<char, std::int64_t> at;
  const auto offset = [&](const std::string& term) {
    std::int64_t flat = 0;
    for (char c : term) flat = flat * sizes[c] + at[c];
    return static_cast<std::size_t>(flat);
  };
  for (bool more = results != 0; more;) {
    double product = 1;
    for (std::size_t t = 0; t < terms.size(); ++t)
      product *= static_cast<double>(tensors[t]->values<float>()[offset(terms[t])]);
    sums[offset(result)] += product;
    more = false;
    for (auto& [label, size] : sizes) {
      if (++at[label] < size) {
        more = true;
        break;
      }
      at[label] = 0;
    }
  }
  return sums;
}

TEST_CASE("einsum sums over the labels that the result lacks") {
  struct Case {
    std::string operands, result;
    std::vector<Shape> shapes;
    Shape out;
  };
  const Case cases[] = {
      {"ij,jk", "ik", {{3, 4}, {4, 5}}, {3, 5}},
      {"bij,bjk", "bik", {{2, 3, 4}, {2, 4, 5}}, {2, 3, 5}},
      {"bhid,bhjd", "bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}}, {2, 2, 3, 5}},
      {"bihd,bjhd", "bhij", {{2, 3, 2, 4}, {2, 5, 2, 4}}, {2, 2, 3, 5}},
      {"ij", "ji", {{3, 4}}, {4, 3}},
      {"ii", "i", {{4, 4}}, {4}},
      {"ii", "", {{4, 4}}, {}},
      {"ij,k", "jk", {{3, 4}, {2}}, {4, 2}},
      {"i,i", "", {{6}, {6}}, {}},
      {"i,j", "ji", {{3}, {2}}, {2, 3}},
      {"ij,ij,j", "i", {{3, 4}, {3, 4}, {4}}, {3}},
      {"ij,jk", "ki", {{30, 40}, {40, 50}}, {50, 30}},
      // Heads of a, of b and of the result lie at different places.
      {"hij,jhc", "ihc", {{3, 20, 21}, {21, 3, 18}}, {20, 3, 18}},
      {"bhij,bjhc", "bihc", {{2, 3, 20, 9}, {2, 9, 3, 17}}, {2, 20, 3, 17}},
      {"hij,jhc", "ihc", {{3, 2, 5}, {5, 3, 4}}, {2, 3, 4}},
      {"iab,abj", "ij", {{9, 4, 5}, {4, 5, 33}}, {9, 33}},
      {"iab,abcd", "icd", {{9, 4, 5}, {4, 5, 3, 11}}, {9, 3, 11}},
      {"bij,bjk", "bik", {{7, 9, 32}, {7, 32, 9}}, {7, 9, 9}},
      {"ij,j", "i", {{9, 70}, {70}}, {9}},
      {"hij,hj", "hi", {{3, 20, 21}, {3, 21}}, {3, 20}},
      {"hij,jh", "hi", {{3, 20, 21}, {21, 3}}, {3, 20}},
      {"hij,hj", "ih", {{3, 20, 21}, {3, 21}}, {20, 3}},
      // One of them elsewhere: terms in another order, columns apart, rows in two pieces.
      {"iab,baj", "ij", {{9, 4, 5}, {5, 4, 33}}, {9, 33}},
      {"hji,jhc", "ihc", {{3, 21, 20}, {21, 3, 18}}, {20, 3, 18}},
      {"hij,jhc", "ich", {{3, 20, 21}, {21, 3, 18}}, {20, 18, 3}},
      {"ahbj,hjc", "habc", {{4, 3, 5, 21}, {3, 21, 18}}, {3, 4, 5, 18}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.operands, c.result);
    std::vector<HostTensor> inputs;
    for (std::size_t i = 0; i < c.shapes.size(); ++i)
      inputs.push_back(HostTensor::Random(c.shapes[i], static_cast<std::uint32_t>(i) + 1));
    HostTensor out = HostTensor::Empty<float>(c.out);
    std::vector<HostTensor*> tensors;
    tensors.reserve(inputs.size() + 1);
    for (HostTensor& input : inputs) tensors.push_back(&input);
    const auto expected = NaiveEinsum(c.operands, c.result, tensors);
    tensors.push_back(&out);
    const std::string equation = c.operands + " -> " + c.result;
    REQUIRE(Run("rewire.einsum", tensors, {{"equation", equation.c_str()}}) == "");
    CheckClose(out, expected);
  }
}

TEST_CASE("einsum of integers, of an operand for all heads, and of ellipses") {
  HostTensor left = HostTensor::Of<std::int32_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  HostTensor right = HostTensor::Of<std::int32_t>({2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  HostTensor sums = HostTensor::Empty<std::int32_t>({2, 2, 2});
  REQUIRE(Run("rewire.einsum", {&left, &right, &sums}, {{"equation", "hij,jhc->ihc"}}) == "");
  CHECK(sums.values<std::int32_t>() == std::vector<std::int32_t>{7, 70, 34, 340, 15, 150, 46, 460});
  // One head of a for all of b: heads are columns then.
  HostTensor one = HostTensor::Random({1, 20, 21}, 3), of_heads = HostTensor::Random({21, 3, 18}, 4);
  HostTensor each = HostTensor::Empty<float>({20, 3, 18});
  HostTensor plain = one;
  plain.SetView({20, 21}, {21, 1});
  REQUIRE(Run("rewire.einsum", {&one, &of_heads, &each}, {{"equation", "hij,jhc->ihc"}}) == "");
  CheckClose(each, NaiveEinsum("ij,jhc", "ihc", {&plain, &of_heads}));

  HostTensor a = HostTensor::Random({2, 3, 4, 5}, 1);
  HostTensor b = HostTensor::Random({5, 6}, 2);
  HostTensor same = HostTensor::Empty<float>({2, 3, 4, 6});
  HostTensor product = HostTensor::Empty<float>({2, 3, 4, 6});
  REQUIRE(Run("rewire.einsum", {&a, &b, &same}, {{"equation", "...i,ij"}}) == "");
  REQUIRE(Run("rewire.matmul", {&a, &b, &product}) == "");
  CheckClose(same, std::vector<double>(product.elements<float>().begin(), product.elements<float>().end()));
  HostTensor flat = HostTensor::Empty<float>({2});
  CHECK(Run("rewire.einsum", {&a, &flat}, {{"equation", "ij->i"}}) ==
        "ValueError: rewire.einsum: operand 0 has shape [2, 3, 4, 5], expected the rank of 'ij'");
  CHECK(Run("rewire.einsum", {&a, &flat}, {{"equation", "ijkl->m"}}) ==
        "ValueError: rewire.einsum: attribute 'equation' is 'ijkl->m': its result is no list of different "
        "labels of "
        "its operands");
  CHECK(Run("rewire.einsum", {&a, &b, &flat}, {{"equation", "ijkl,im->i"}}) ==
        "ValueError: rewire.einsum: axis 0 of operand 1 with shape [5, 6] is 5, expected 2 as the label's "
        "others");
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
