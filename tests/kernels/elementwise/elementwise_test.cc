// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison, functions of one element, activations, where and cast.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

// The offset of an element of a row-major tensor of shape `shape` that belongs to element `flat` of `out`.
std::int64_t BroadcastOffset(const Shape& shape, const Shape& out, std::int64_t flat) {
  std::int64_t offset = 0;
  std::int64_t step = 1;
  for (std::size_t back = 1; back <= out.size(); ++back) {
    const std::int64_t dim = out[out.size() - back];
    const std::int64_t index = flat % dim;
    flat /= dim;
    if (back > shape.size()) continue;
    const std::int64_t own = shape[shape.size() - back];
    if (own != 1) offset += index * step;
    step *= own;
  }
  return offset;
}

void CheckBinary(const std::string& name, const Shape& a_shape, const Shape& b_shape, const Shape& out_shape,
                 const std::function<float(float, float)>& expected) {
  HostTensor a = HostTensor::Random(a_shape, 1);
  HostTensor b = HostTensor::Random(b_shape, 2);
  HostTensor out = HostTensor::Empty<float>(out_shape);
  REQUIRE(Run(name, {&a, &b, &out}) == "");
  const auto av = a.values<float>();
  const auto bv = b.values<float>();
  const auto values = out.values<float>();
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const float x = av[static_cast<std::size_t>(BroadcastOffset(a_shape, out_shape, i))];
    const float y = bv[static_cast<std::size_t>(BroadcastOffset(b_shape, out_shape, i))];
    if (values[static_cast<std::size_t>(i)] != expected(x, y)) {
      FAIL(name << " at " << i << ": " << values[static_cast<std::size_t>(i)] << ", expected "
                << expected(x, y));
    }
  }
}

template <typename T>
std::vector<T> Binary(const std::string& name, const std::vector<T>& a, const std::vector<T>& b) {
  const Shape shape{static_cast<std::int64_t>(a.size())};
  HostTensor x = HostTensor::Of<T>(shape, a);
  HostTensor y = HostTensor::Of<T>(shape, b);
  HostTensor out = HostTensor::Empty<T>(shape);
  REQUIRE(Run(name, {&x, &y, &out}) == "");
  return out.values<T>();
}

template <typename T>
std::vector<T> Unary(const std::string& name, const std::vector<T>& x, const AttributeList& attributes = {}) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  HostTensor in = HostTensor::Of<T>(shape, x);
  HostTensor out = HostTensor::Empty<T>(shape);
  REQUIRE(Run(name, {&in, &out}, attributes) == "");
  return out.values<T>();
}

TEST_CASE("binary operations broadcast as numpy does") {
  struct Case {
    Shape a, b, out;
  };
  const Case cases[] = {
      {{}, {}, {}},
      {{4}, {4}, {4}},
      {{2, 3}, {3}, {2, 3}},
      {{3}, {2, 3}, {2, 3}},
      {{2, 3}, {}, {2, 3}},
      {{2, 1}, {1, 3}, {2, 3}},
      // Short rows in loops of three and four dimensions, which are handed out in groups and split in the
      // middle of one.
      {{9, 1, 41, 3}, {31, 41, 1}, {9, 31, 41, 3}},
      {{13, 57, 5}, {13, 1, 5}, {13, 57, 5}},
      {{7, 1, 29, 1}, {17, 1, 11}, {7, 17, 29, 11}},
      {{5, 1, 4}, {3, 1}, {5, 3, 4}},
      {{2, 3, 4, 5}, {3, 1, 1}, {2, 3, 4, 5}},
      {{1, 1, 1}, {2, 1}, {1, 2, 1}},
      {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 1}, {2, 4, 3, 5, 2}},
      {{70000}, {1}, {70000}},
      {{300, 200}, {200}, {300, 200}},
      {{200, 300}, {200, 1}, {200, 300}},
      {{1, 40000}, {2, 1}, {2, 40000}},
  };
  for (const Case& c : cases) {
    CheckBinary("rewire.add", c.a, c.b, c.out, [](float x, float y) { return x + y; });
    CheckBinary("rewire.sub", c.a, c.b, c.out, [](float x, float y) { return x - y; });
    CheckBinary("rewire.div", c.a, c.b, c.out, [](float x, float y) { return x / y; });
  }
  CheckBinary("rewire.mul", {2, 3}, {2, 3}, {2, 3}, [](float x, float y) { return x * y; });
  CheckBinary("rewire.max", {9}, {9}, {9}, [](float x, float y) { return x > y ? x : y; });
  CheckBinary("rewire.min", {9}, {9}, {9}, [](float x, float y) { return x < y ? x : y; });
}

TEST_CASE("empty tensors give empty tensors") {
  CheckBinary("rewire.add", {0}, {1}, {0}, std::plus<float>());
  CheckBinary("rewire.add", {2, 0, 3}, {3}, {2, 0, 3}, std::plus<float>());
}

TEST_CASE("strided operands are read and written in place") {
  // A transposed view, every second element backwards, and an output with gaps.
  HostTensor a = HostTensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  a.SetView({3, 2}, {1, 3});
  HostTensor b = HostTensor::Of<float>({4}, {10, 20, 30, 40});
  b.SetView({2}, {-2}, 3 * sizeof(float));
  HostTensor out = HostTensor::Of<float>({3, 3}, std::vector<float>(9, -1));
  out.SetView({3, 2}, {3, 1});
  REQUIRE(Run("rewire.add", {&a, &b, &out}) == "");
  CHECK(out.values<float>() == std::vector<float>{41, 24, -1, 42, 25, -1, 43, 26, -1});
}

TEST_CASE("tensors of one shape lie in memory in their own order") {
  const int transposed = GENERATE(0, 1, 2);
  HostTensor a = HostTensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor b = HostTensor::Of<float>({2, 3}, {10, 20, 30, 40, 50, 60});
  HostTensor out = HostTensor::Of<float>({2, 3}, std::vector<float>(6, -1));
  HostTensor* const tensors[] = {&a, &b, &out};
  tensors[transposed]->SetView({2, 3}, {1, 2});
  REQUIRE(Run("rewire.add", {&a, &b, &out}) == "");
  const std::vector<float> from_a = a.values<float>(), from_b = b.values<float>(), sums = out.values<float>();
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      const auto at = [&](int tensor) {
        return static_cast<std::size_t>(tensor == transposed ? i + 2 * j : 3 * i + j);
      };
      CHECK(sums[at(2)] == from_a[at(0)] + from_b[at(1)]);
    }
  }
}

TEST_CASE("the output may be an input, not a part of one") {
  HostTensor x = HostTensor::Of<float>({4}, {1, 2, 3, 4});
  REQUIRE(Run("rewire.add", {&x, &x, &x}) == "");
  CHECK(x.values<float>() == std::vector<float>{2, 4, 6, 8});

  HostTensor shifted = x;
  DLTensor* whole = x.dl();
  DLTensor part = *whole;
  std::int64_t three = 3;
  part.shape = &three;
  DLTensor tail = part;
  tail.byte_offset = sizeof(float);
  RewireFFIAny args[3] = {};
  for (RewireFFIAny& arg : args) arg.type_index = kRewireFFIDLTensorPtr;
  args[0].v_ptr = &part;
  args[1].v_ptr = &part;
  args[2].v_ptr = &tail;
  CHECK(StockKernel("rewire.add").CallRaw(args, 3) == -1);
  CHECK(TakeError() == "ValueError: rewire.add: out overlaps a without being the same elements");
}

TEST_CASE("integer arithmetic wraps and never traps") {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kLeast64 = std::numeric_limits<std::int64_t>::min();
  using I32 = std::vector<std::int32_t>;
  using I64 = std::vector<std::int64_t>;
  CHECK(Binary<std::int32_t>("rewire.add", {kMost, 1}, {1, 2}) == I32{kLeast, 3});
  CHECK(Binary<std::int32_t>("rewire.sub", {kLeast}, {1}) == I32{kMost});
  CHECK(Binary<std::int64_t>("rewire.mul", {kLeast64, 3}, {-1, -4}) == I64{kLeast64, -12});
  CHECK(Binary<std::int32_t>("rewire.div", {7, -7, 5, kLeast}, {2, 2, 0, -1}) == I32{3, -3, 0, kLeast});
  CHECK(Binary<std::int64_t>("rewire.div", {9, kLeast64, kLeast64}, {-4, -1, 1}) ==
        I64{-2, kLeast64, kLeast64});
  CHECK(Binary<std::int32_t>("rewire.mod", {7, -7, 7, -7, 5, kLeast}, {3, 3, -3, -3, 0, -1}) ==
        I32{1, 2, -2, -1, 0, 0});
  CHECK(Binary<std::int32_t>("rewire.fmod", {7, -7, 7, -7}, {3, 3, -3, -3}) == I32{1, -1, 1, -1});
  CHECK(Binary<std::int64_t>("rewire.pow", {2, 3, -1, 2, -1, 1, 0, 5}, {10, 4, -3, -2, -2, -9, 0, 1}) ==
        I64{1024, 81, -1, 0, 1, 1, 1, 5});
  CHECK(Binary<std::uint8_t>("rewire.sub", {3, 200}, {4, 100}) == std::vector<std::uint8_t>{255, 100});
  CHECK(Binary<std::uint8_t>("rewire.mod", {250, 3}, {100, 0}) == std::vector<std::uint8_t>{50, 0});
  CHECK(Binary<std::int8_t>("rewire.mul", {100, -128}, {2, -1}) == std::vector<std::int8_t>{-56, -128});
  CHECK(Binary<std::int8_t>("rewire.div", {-128, -7}, {-1, 2}) == std::vector<std::int8_t>{-128, -3});
}

TEST_CASE("float arithmetic follows IEEE, and NaN comes through min and max") {
  const auto quotient = Binary<float>("rewire.div", {1, -1, 0}, {0, 0, 0});
  CHECK(quotient[0] == kInf);
  CHECK(quotient[1] == -kInf);
  CHECK(std::isnan(quotient[2]));
  for (const char* name : {"rewire.min", "rewire.max"}) {
    const auto values = Binary<float>(name, {kNaN, 1, kNaN}, {1, kNaN, kNaN});
    for (float value : values) CHECK(std::isnan(value));
  }
  CHECK(Binary<float>("rewire.mod", {5.5f, -5.5f, 5.5f}, {2, 2, -2}) ==
        std::vector<float>{1.5f, 0.5f, -0.5f});
  CHECK(Binary<float>("rewire.fmod", {5.5f, -5.5f, 5.5f}, {2, 2, -2}) ==
        std::vector<float>{1.5f, -1.5f, 1.5f});
  CHECK(Binary<double>("rewire.pow", {2, 4, 9}, {-1, 0.5, 2}) == std::vector<double>{0.5, 2, 81});
}

TEST_CASE("comparisons give booleans") {
  HostTensor a = HostTensor::Of<float>({4}, {1, 2, 3, kNaN});
  HostTensor b = HostTensor::Of<float>({4}, {2, 2, 2, kNaN});
  const std::pair<const char*, std::vector<std::uint8_t>> cases[] = {
      {"rewire.equal", {0, 1, 0, 0}},      {"rewire.not_equal", {1, 0, 1, 1}},
      {"rewire.less", {1, 0, 0, 0}},       {"rewire.greater", {0, 0, 1, 0}},
      {"rewire.less_equal", {1, 1, 0, 0}}, {"rewire.greater_equal", {0, 1, 1, 0}},
  };
  for (const auto& [name, expected] : cases) {
    HostTensor out = HostTensor::Empty<bool>({4});
    REQUIRE(Run(name, {&a, &b, &out}) == "");
    CHECK(out.values<std::uint8_t>() == expected);
  }
}

TEST_CASE("logic takes any byte but 0 as true") {
  HostTensor a = HostTensor::Of<bool>({4}, {false, false, true, true});
  HostTensor b = HostTensor::Of<bool>({4}, {false, true, false, true});
  a.elements<std::uint8_t>()[2] = 0xA5;
  b.elements<std::uint8_t>()[3] = 2;
  const std::pair<const char*, std::vector<std::uint8_t>> cases[] = {
      {"rewire.and", {0, 0, 0, 1}},   {"rewire.or", {0, 1, 1, 1}},        {"rewire.xor", {0, 1, 1, 0}},
      {"rewire.equal", {1, 0, 0, 1}}, {"rewire.not_equal", {0, 1, 1, 0}},
  };
  for (const auto& [name, expected] : cases) {
    HostTensor out = HostTensor::Empty<bool>({4});
    REQUIRE(Run(name, {&a, &b, &out}) == "");
    CHECK(out.values<std::uint8_t>() == expected);
  }
  HostTensor out = HostTensor::Empty<bool>({4});
  REQUIRE(Run("rewire.not", {&a, &out}) == "");
  CHECK(out.values<std::uint8_t>() == std::vector<std::uint8_t>{1, 1, 0, 0});
}

TEST_CASE("a truth value that decides the result decides all it is repeated for") {
  HostTensor many = HostTensor::Empty<bool>({3, 100}), out = HostTensor::Empty<bool>({3, 100});
  for (std::int64_t i = 0; i < many.size(); ++i)
    many.elements<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 3);
  HostTensor rows = HostTensor::Of<bool>({3, 1}, {false, true, false});
  rows.elements<std::uint8_t>()[1] = 7;
  const std::pair<const char*, bool (*)(bool, bool)> cases[] = {
      {"rewire.and", [](bool a, bool b) { return a && b; }},
      {"rewire.or", [](bool a, bool b) { return a || b; }},
      {"rewire.xor", [](bool a, bool b) { return a != b; }},
      {"rewire.equal", [](bool a, bool b) { return a == b; }}};
  for (const auto& [name, function] : cases) {
    for (const bool is_left : {true, false}) {
      REQUIRE((is_left ? Run(name, {&rows, &many, &out}) : Run(name, {&many, &rows, &out})) == "");
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < many.size(); ++i)
        wrong += out.elements<std::uint8_t>()[i] == (function(i / 100 == 1, i % 3 != 0) ? 1 : 0) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("functions of one element agree with the mathematical ones") {
  const std::pair<const char*, double (*)(double)> cases[] = {
      {"rewire.neg", [](double x) { return -x; }},
      {"rewire.abs", [](double x) { return x < 0 ? -x : x; }},
      {"rewire.sign", [](double x) { return x < 0 ? -1.0 : 1.0; }},
      {"rewire.relu", [](double x) { return x < 0 ? 0 : x; }},
      {"rewire.sigmoid", [](double x) { return std::exp(x) / (1 + std::exp(x)); }},
      {"rewire.softplus", [](double x) { return std::log(1 + std::exp(x)); }},
      {"rewire.softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"rewire.reciprocal", [](double x) { return 1 / x; }},
      {"rewire.floor", [](double x) { return std::floor(x); }},
      {"rewire.ceil", [](double x) { return std::ceil(x); }},
      {"rewire.exp", [](double x) { return std::exp(x); }},
      {"rewire.sin", [](double x) { return std::sin(x); }},
      {"rewire.cos", [](double x) { return std::cos(x); }},
      {"rewire.tan", [](double x) { return std::sin(x) / std::cos(x); }},
      {"rewire.asin", [](double x) { return std::asin(x); }},
      {"rewire.acos", [](double x) { return std::acos(x); }},
      {"rewire.atan", [](double x) { return std::atan(x); }},
      {"rewire.sinh", [](double x) { return (std::exp(x) - std::exp(-x)) / 2; }},
      {"rewire.cosh", [](double x) { return (std::exp(x) + std::exp(-x)) / 2; }},
      {"rewire.tanh", [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }},
      {"rewire.asinh", [](double x) { return std::log(x + std::sqrt(x * x + 1)); }},
      {"rewire.atanh", [](double x) { return 0.5 * std::log((1 + x) / (1 - x)); }},
      {"rewire.erf", [](double x) { return std::erf(x); }},
      {"rewire.round", [](double x) { return x < -0.5  ? -1.0
                                             : x > 0.5 ? 1.0
                                                       : 0.0; }},
  };
  const std::vector<float> x{-0.9f, -0.5f, -0.25f, 0.125f, 0.5f, 0.75f};
  for (const auto& [name, expected] : cases) {
    const auto values = Unary<float>(name, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(name << " of " << x[i]);
      CHECK(values[i] == Approx(expected(static_cast<double>(x[i]))).margin(1e-6));
    }
  }
  CHECK(Unary<double>("rewire.sqrt", {4, 2}) == std::vector<double>{2, std::sqrt(2.0)});
  CHECK(Unary<float>("rewire.log", {1, 0}) == std::vector<float>{0, -kInf});
  CHECK(Unary<double>("rewire.acosh", {1, 2})[1] == Approx(std::log(2 + std::sqrt(3.0))));
}

TEST_CASE("functions of one element at the edges") {
  CHECK(Unary<float>("rewire.round", {0.5f, 1.5f, 2.5f, -0.5f, -1.5f}) == std::vector<float>{0, 2, 2, 0, -2});
  CHECK(Unary<float>("rewire.sigmoid", {-1000, 1000}) == std::vector<float>{0, 1});
  CHECK(Unary<float>("rewire.softplus", {-1000, 1000}) == std::vector<float>{0, 1000});
  CHECK(Unary<float>("rewire.sign", {0}) == std::vector<float>{0});
  for (const char* name : {"rewire.relu", "rewire.sign", "rewire.abs", "rewire.exp"}) {
    CHECK(std::isnan(Unary<float>(name, {kNaN})[0]));
  }
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  CHECK(Unary<std::int32_t>("rewire.neg", {kLeast, 5}) == std::vector<std::int32_t>{kLeast, -5});
  CHECK(Unary<std::int8_t>("rewire.abs", {-128, -5}) == std::vector<std::int8_t>{-128, 5});
  HostTensor x = HostTensor::Of<float>({3}, {1, kNaN, kInf});
  HostTensor out = HostTensor::Empty<bool>({3});
  REQUIRE(Run("rewire.isnan", {&x, &out}) == "");
  CHECK(out.values<std::uint8_t>() == std::vector<std::uint8_t>{0, 1, 0});
}

TEST_CASE("activations read their attributes") {
  CHECK(Unary<float>("rewire.leaky_relu", {-2, 3}, {{"alpha", 0.5}}) == std::vector<float>{-1, 3});
  CHECK(Unary<float>("rewire.leaky_relu", {-2, 3}) == std::vector<float>{-0.02f, 3});
  CHECK(Unary<double>("rewire.elu", {-1, 2}, {{"alpha", 2.0}})[0] == Approx(2 * (std::exp(-1.0) - 1)));
  CHECK(Unary<double>("rewire.selu", {2})[0] == Approx(2 * 1.05070102214813232421875));
  CHECK(Unary<double>("rewire.selu", {-1})[0] ==
        Approx(1.0507009873554805 * 1.6732632423543772 * (std::exp(-1.0) - 1)));
  CHECK(Unary<double>("rewire.gelu", {0.5})[0] == Approx(0.34573123).epsilon(1e-7));
  CHECK(Unary<double>("rewire.gelu", {0.5}, {{"approximate", "tanh"}})[0] ==
        Approx(0.34571401).epsilon(1e-7));
  CHECK(Unary<float>("rewire.hard_sigmoid", {-5, 0, 5}) == std::vector<float>{0, 0.5f, 1});
  CHECK(Unary<float>("rewire.hard_swish", {-4, 0, 3, 6}) == std::vector<float>{0, 0, 3, 6});
  const auto clipped = Unary<float>("rewire.clip", {-5, 0.5f, 5, kNaN}, {{"min", -1.0}, {"max", 1}});
  CHECK(clipped[0] == -1);
  CHECK(clipped[1] == 0.5f);
  CHECK(clipped[2] == 1);
  CHECK(std::isnan(clipped[3]));
  CHECK(Unary<std::uint8_t>("rewire.clip", {0, 100, 255}, {{"min", 7.0}}) ==
        std::vector<std::uint8_t>{7, 100, 255});
}

TEST_CASE("where chooses and broadcasts") {
  HostTensor condition = HostTensor::Of<bool>({2, 1}, {true, false});
  HostTensor a = HostTensor::Of<std::int64_t>({3}, {1, 2, 3});
  HostTensor b = HostTensor::Of<std::int64_t>({}, {9});
  HostTensor out = HostTensor::Empty<std::int64_t>({2, 3});
  REQUIRE(Run("rewire.where", {&condition, &a, &b, &out}) == "");
  CHECK(out.values<std::int64_t>() == std::vector<std::int64_t>{1, 2, 3, 9, 9, 9});
  HostTensor rows = HostTensor::Of<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (bool takes_rows : {false, true}) {
    HostTensor one = HostTensor::Of<bool>({}, {takes_rows});
    REQUIRE(Run("rewire.where", {&one, &rows, &b, &out}) == "");
    CHECK(out.values<std::int64_t>() ==
          (takes_rows ? rows.values<std::int64_t>() : std::vector<std::int64_t>(6, 9)));
    REQUIRE(Run("rewire.where", {&one, &b, &rows, &out}) == "");
    CHECK(out.values<std::int64_t>() ==
          (takes_rows ? std::vector<std::int64_t>(6, 9) : rows.values<std::int64_t>()));
  }
}

TEST_CASE("cast saturates floats, wraps integers and knows booleans") {
  HostTensor x = HostTensor::Of<float>({7}, {1.9f, -1.9f, 3e9f, -3e9f, kNaN, kInf, 0});
  HostTensor i32 = HostTensor::Empty<std::int32_t>({7});
  REQUIRE(Run("rewire.cast", {&x, &i32}) == "");
  CHECK(i32.values<std::int32_t>() ==
        std::vector<std::int32_t>{1, -1, 2147483647, -2147483647 - 1, 0, 2147483647, 0});
  HostTensor truth = HostTensor::Empty<bool>({7});
  REQUIRE(Run("rewire.cast", {&x, &truth}) == "");
  CHECK(truth.values<std::uint8_t>() == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 0});
  HostTensor back = HostTensor::Empty<double>({7});
  REQUIRE(Run("rewire.cast", {&truth, &back}) == "");
  CHECK(back.values<double>() == std::vector<double>{1, 1, 1, 1, 1, 1, 0});
  HostTensor wide = HostTensor::Of<std::int64_t>({3}, {300, -1, 1LL << 40});
  HostTensor narrow = HostTensor::Empty<std::uint8_t>({3});
  REQUIRE(Run("rewire.cast", {&wide, &narrow}) == "");
  CHECK(narrow.values<std::uint8_t>() == std::vector<std::uint8_t>{44, 255, 0});
}

TEST_CASE("wrong arguments of elementwise kernels are refused with exact messages") {
  HostTensor f23 = HostTensor::Random({2, 3}, 1);
  HostTensor f4 = HostTensor::Random({4}, 1);
  HostTensor f3 = HostTensor::Random({3}, 1);
  HostTensor i23 = HostTensor::Empty<std::int32_t>({2, 3});
  HostTensor b3 = HostTensor::Empty<bool>({3});
  CHECK(Run("rewire.add", {&f23, &f23}) == "TypeError: rewire.add: expected 3 arguments, got 2");
  CHECK(Run("rewire.add", {&f23, nullptr, &f23}) ==
        "TypeError: rewire.add: argument 1: expected a tensor, got None");
  CHECK(Run("rewire.add", {&f23, &f4, &f23}) ==
        "ValueError: rewire.add: shapes [2, 3] and [4] do not broadcast: 3 and 4 at axis 1 of the result");
  CHECK(Run("rewire.add", {&f23, &f3, &f3}) == "ValueError: rewire.add: out has shape [3], expected [2, 3]");
  CHECK(Run("rewire.add", {&f23, &i23, &f23}) == "TypeError: rewire.add: b has dtype i32, expected f32 as a");
  CHECK(Run("rewire.add", {&f23, &f3, &i23}) ==
        "TypeError: rewire.add: out has dtype i32, expected f32 as a");
  CHECK(Run("rewire.less", {&f3, &f3, &f4}) == "ValueError: rewire.less: out has shape [4], expected [3]");
  HostTensor f3b = HostTensor::Random({3}, 2);
  CHECK(Run("rewire.less", {&f3, &f3, &f3b}) == "TypeError: rewire.less: out has dtype f32, expected bool");
  CHECK(Run("rewire.and", {&f3, &f3, &b3}) == "TypeError: rewire.and: a has dtype f32, expected bool");
  CHECK(Run("rewire.exp", {&i23, &i23}) ==
        "TypeError: rewire.exp: x has dtype i32, expected one of f32, f64, f16, bf16");
  CHECK(Run("rewire.clip", {&f3, &f3}, {{"mn", 1.0}}) ==
        "ValueError: rewire.clip: unknown attribute 'mn'; did you mean 'min'? (it takes: min, max)");
  CHECK(Run("rewire.clip", {&f3, &f3}, {{"min", "low"}}) ==
        "TypeError: rewire.clip: attribute 'min': expected a float, got string");
  CHECK(Run("rewire.gelu", {&f3, &f3}, {{"approximate", "fast"}}) ==
        "ValueError: rewire.gelu: attribute 'approximate' is 'fast', expected one of 'none', 'tanh'");
  HostTensor device = HostTensor::Random({3}, 1);
  device.set_device(DLDevice{kDLCUDA, 0});
  CHECK(Run("rewire.add", {&device, &f3, &f3}) ==
        "TypeError: rewire.add: a is on device type 2, expected host memory");
  HostTensor deep = HostTensor::Random(Shape(17, 1), 1);
  CHECK(Run("rewire.neg", {&deep, &deep}) == "ValueError: rewire.neg: out has rank 17, expected at most 16");
}

}  // namespace
}  // namespace rewire::test
