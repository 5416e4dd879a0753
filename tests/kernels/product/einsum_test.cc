// SPDX-License-Identifier: Apache-2.0
// Einstein summation against a loop over all labels.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "rewire/tests/kernels/close.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

// Einstein summation by the definition: a sum over all values of all labels.
template <typename T>
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
      product *= static_cast<double>(tensors[t]->elements<T>()[offset(terms[t])]);
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
    const auto expected = NaiveEinsum<float>(c.operands, c.result, tensors);
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
  CheckClose(each, NaiveEinsum<float>("ij,jhc", "ihc", {&plain, &of_heads}));

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

// Small whole numbers, so that sums in any order are exact.
template <typename T>
void CheckEquation(const std::vector<std::string>& terms, const std::string& result,
                   std::map<char, std::int64_t> sizes, std::mt19937& random) {
  std::string operands;
  std::vector<HostTensor> inputs;
  const auto shape_of = [&](const std::string& term) {
    Shape shape;
    for (const char label : term) shape.push_back(sizes[label]);
    return shape;
  };
  for (const std::string& term : terms) {
    operands += (inputs.empty() ? "" : ",") + term;
    inputs.push_back(HostTensor::Empty<T>(shape_of(term)));
    for (T& element : inputs.back().elements<T>())
      element = static_cast<T>(static_cast<int>(random() % 5) - 2);
  }
  HostTensor out = HostTensor::Empty<T>(shape_of(result));
  std::vector<HostTensor*> tensors;
  tensors.reserve(inputs.size() + 1);
  for (HostTensor& input : inputs) tensors.push_back(&input);
  const std::vector<double> expected = NaiveEinsum<T>(operands, result, tensors);
  tensors.push_back(&out);
  const std::string equation = operands + "->" + result;
  CAPTURE(equation, sizes);
  REQUIRE(Run("rewire.einsum", tensors, {{"equation", equation.c_str()}}) == "");
  const auto values = out.values<T>();
  REQUIRE(values.size() == expected.size());
  CHECK(std::equal(values.begin(), values.end(), expected.begin(),
                   [](T value, double sum) { return static_cast<double>(value) == sum; }));
}

TEST_CASE("random equations, exact on whole numbers, on every instruction set") {
  ForEachTarget([] {
    std::mt19937 random(7);
    for (int i = 0; i < 150; ++i) {
      std::map<char, std::int64_t> sizes;
      for (const char label : std::string("abcde")) {
        constexpr std::int64_t kSizes[] = {1, 2, 3, 5, 17};
        sizes[label] = kSizes[random() % 5];
      }
      std::vector<std::string> terms(1 + random() % 4);
      std::string labels;
      for (std::string& term : terms) {
        for (std::uint32_t axes = random() % 4; axes > 0; --axes)
          term += static_cast<char>('a' + random() % 5);
        labels += term;
      }
      std::shuffle(labels.begin(), labels.end(), random);
      std::string result;
      for (const char label : labels) {
        if (random() % 2 == 0 && result.find(label) == std::string::npos) result += label;
      }
      CheckEquation<float>(terms, result, sizes, random);
      CheckEquation<std::int64_t>(terms, result, sizes, random);
    }
  });
}

TEST_CASE("einsum of rows longer than a part, and of more labels than a layout has") {
  std::mt19937 random(8);
  const std::map<char, std::int64_t> sizes = {{'a', 3}, {'b', 5000}, {'c', 2}};
  for (const char* result : {"", "a", "b", "ca", "ac", "bc"}) {
    CheckEquation<float>({"abc"}, result, sizes, random);
    CheckEquation<std::int32_t>({"acb", "b"}, result, sizes, random);
    CheckEquation<float>({"ab", "bc"}, result, sizes, random);
  }
  const std::string many = "abcdefghijklmnopqrs";  // 19, of which four are larger than 1
  std::map<char, std::int64_t> small;
  for (const char label : many) small[label] = label % 5 == 0 ? 2 : 1;
  CheckEquation<float>({many.substr(0, 10), many.substr(8)}, "oed", small, random);
}

}  // namespace
}  // namespace rewire::test
