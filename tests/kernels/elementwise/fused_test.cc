// SPDX-License-Identifier: Apache-2.0
// rewire.fused against the kernels that do the same one by one.
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/kernels/cpu/elementwise/fused_steps.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::ChooseFusedConversions;
using kernel::cpu::ChooseFusedStepKernel;
using kernel::cpu::FusedElements;
using kernel::cpu::FusedProgram;

AttributeList Program(const char* text) { return {{"program", text}}; }

// Numbers of every kind, as many as leave a rest of every vector.
std::vector<float> FusedPoints() {
  std::vector<float> points = {0.0F, -0.0F, kInf,  -kInf,  kNaN,  1.0F,   -1.0F, 0.5F,   -0.5F, 1.5F,
                               2.5F, -2.5F, 1e30F, -1e30F, 20.5F, -20.5F, 88.0F, -88.0F, 3e9F,  -3e9F};
  for (int i = -60; i <= 60; ++i) points.push_back(static_cast<float>(i) * 0.137F);
  return points;
}

void CheckClose(const std::vector<float>& given, const std::vector<float>& expected) {
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    CAPTURE(i, given[i], expected[i]);
    if (std::isnan(expected[i])) {
      REQUIRE(std::isnan(given[i]));
    } else if (!(given[i] == expected[i])) {
      REQUIRE(given[i] == Approx(expected[i]).epsilon(2e-6).margin(1e-6));
    }
  }
}

struct SameAs {
  const char* step;
  const char* kernel;
  AttributeList attributes = {};
};

TEST_CASE("fused: each operation of one element does what its kernel does") {
  const std::vector<SameAs> rows = {
      {"neg x0", "rewire.neg"},
      {"abs x0", "rewire.abs"},
      {"sign x0", "rewire.sign"},
      {"relu x0", "rewire.relu"},
      {"reciprocal x0", "rewire.reciprocal"},
      {"round x0", "rewire.round"},
      {"floor x0", "rewire.floor"},
      {"ceil x0", "rewire.ceil"},
      {"sqrt x0", "rewire.sqrt"},
      {"exp x0", "rewire.exp"},
      {"log x0", "rewire.log"},
      {"sin x0", "rewire.sin"},
      {"cos x0", "rewire.cos"},
      {"tanh x0", "rewire.tanh"},
      {"erf x0", "rewire.erf"},
      {"sigmoid x0", "rewire.sigmoid"},
      {"softplus x0", "rewire.softplus"},
      {"softsign x0", "rewire.softsign"},
      {"hard_swish x0", "rewire.hard_swish"},
      {"swish x0", "rewire.swish"},
      {"mish x0", "rewire.mish"},
      {"gelu x0", "rewire.gelu"},
      {"gelu_tanh x0", "rewire.gelu", {{"approximate", "tanh"}}},
      {"elu x0 0.7", "rewire.elu", {{"alpha", 0.7}}},
      {"prelu x0 0.3", "rewire.leaky_relu", {{"alpha", 0.3}}},
      {"clip x0 -0.25 6", "rewire.clip", {{"min", -0.25}, {"max", 6.0}}},
      {"clip x0 -inf 2", "rewire.clip", {{"max", 2.0}}},
      {"hard_sigmoid x0 0.2 0.5", "rewire.hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}}},
  };
  const std::vector<float> points = FusedPoints();
  const Shape shape = {static_cast<std::int64_t>(points.size())};
  HostTensor x = HostTensor::Of<float>(shape, points);
  for (const SameAs& row : rows) {
    CAPTURE(row.step);
    HostTensor expected = HostTensor::Empty<float>(shape), out = HostTensor::Empty<float>(shape);
    REQUIRE(Run(row.kernel, {&x, &expected}, row.attributes) == "");
    REQUIRE(Run("rewire.fused", {&x, &out}, Program(row.step)) == "");
    CheckClose(out.values<float>(), expected.values<float>());
  }
}

// The steps that one pass does in pairs, with operands that have all elements, a row, a column or one.
TEST_CASE("fused: two steps in one pass give what they give one by one") {
  const std::vector<float> points = FusedPoints();
  const std::pair<const char*, const char*> pairs[] = {{"add", "add"}, {"min", "min"}, {"max", "max"},
                                                       {"mul", "add"}, {"add", "max"}, {"sub", "add"}};
  for (const std::int64_t columns : {3, 40, 700}) {
    const Shape whole = {5, columns};
    const Shape shapes[] = {whole, {1, columns}, {5, 1}, {1, 1}};
    const auto filled = [&](const Shape& shape, std::size_t seed) {
      HostTensor tensor = HostTensor::Empty<float>(shape);
      for (std::int64_t i = 0; i < tensor.size(); ++i)
        tensor.elements<float>()[i] = points[(static_cast<std::size_t>(i) * 31 + seed) % points.size()];
      return tensor;
    };
    for (const auto& [first, second] : pairs) {
      for (const Shape& b_shape : shapes) {
        for (const Shape& c_shape : shapes) {
          CAPTURE(first, second, b_shape, c_shape);
          HostTensor a = filled(whole, 0), b = filled(b_shape, 17), c = filled(c_shape, 5);
          HostTensor between = HostTensor::Empty<float>(whole), expected = between, out = between;
          REQUIRE(Run(std::string("rewire.") + first, {&a, &b, &between}) == "");
          REQUIRE(Run(std::string("rewire.") + second, {&between, &c, &expected}) == "");
          const std::string program = std::string(first) + " x0 x1; " + second + " r0 x2";
          REQUIRE(Run("rewire.fused", {&a, &b, &c, &out}, Program(program.c_str())) == "");
          CheckClose(out.values<float>(), expected.values<float>());
          // The result in between is read once more, and so it must be there.
          const std::string again = program + "; sub r1 r0";
          HostTensor difference = HostTensor::Empty<float>(whole);
          REQUIRE(Run("rewire.sub", {&expected, &between, &difference}) == "");
          REQUIRE(Run("rewire.fused", {&a, &b, &c, &out}, Program(again.c_str())) == "");
          CheckClose(out.values<float>(), difference.values<float>());
        }
      }
    }
  }
}

TEST_CASE("fused: each operation of two elements does what its kernel does") {
  const std::vector<float> points = FusedPoints();
  std::vector<float> a, b;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t step : {0, 1, 7, 40}) {
      a.push_back(points[i]);
      b.push_back(points[(i + step) % points.size()]);
    }
  }
  const Shape shape = {static_cast<std::int64_t>(a.size())};
  HostTensor x = HostTensor::Of<float>(shape, a), y = HostTensor::Of<float>(shape, b);
  for (const char* name : {"add", "sub", "mul", "div", "min", "max", "prelu"}) {
    CAPTURE(name);
    HostTensor expected = HostTensor::Empty<float>(shape), out = HostTensor::Empty<float>(shape);
    REQUIRE(Run(std::string("rewire.") + name, {&x, &y, &expected}) == "");
    REQUIRE(Run("rewire.fused", {&x, &y, &out}, {{"program", (std::string(name) + " x0 x1").c_str()}}) == "");
    CheckClose(out.values<float>(), expected.values<float>());
  }
  for (const char* name : {"equal", "not_equal", "less", "less_equal"}) {
    CAPTURE(name);
    HostTensor expected = HostTensor::Empty<bool>(shape), out = HostTensor::Empty<float>(shape);
    REQUIRE(Run(std::string("rewire.") + name, {&x, &y, &expected}) == "");
    REQUIRE(Run("rewire.fused", {&x, &y, &out}, {{"program", (std::string(name) + " x0 x1").c_str()}}) == "");
    for (std::int64_t i = 0; i < x.size(); ++i)
      REQUIRE(out.elements<float>()[i] == (expected.elements<std::uint8_t>()[i] != 0 ? 1.0F : 0.0F));
  }
}

TEMPLATE_TEST_CASE("fused: 16-bit floats are read and written, computed in f32", "", BFloat16,
                   kernel::cpu::Float16) {
  // Images with a slope for each channel, and a factor for each image and channel.
  for (const std::int64_t channels : {1, 5, 32, 700}) {
    const Shape image = {2, 3, 7, channels}, of_image = {2, 1, 1, channels};
    CAPTURE(channels);
    HostTensor x = HostTensor::Empty<TestType>(image), y = HostTensor::Empty<TestType>(of_image);
    HostTensor wide_x = HostTensor::Empty<float>(image), wide_y = HostTensor::Empty<float>(of_image);
    const auto fill = [](HostTensor& narrow, HostTensor& wide, std::uint32_t seed) {
      const auto values = HostTensor::Random(narrow.shape(), seed).values<float>();
      for (std::int64_t i = 0; i < narrow.size(); ++i) {
        narrow.elements<TestType>()[i] = TestType(values[static_cast<std::size_t>(i)]);
        wide.elements<float>()[i] = static_cast<float>(narrow.elements<TestType>()[i]);
      }
    };
    fill(x, wide_x, 1);
    fill(y, wide_y, 2);
    HostTensor slope = HostTensor::Random({channels}, 3);
    ForEachTarget([&] {
      const AttributeList program = Program("prelu x0 x1; mul r0 x2; add r1 x0");
      HostTensor expected = HostTensor::Empty<float>(image), out = HostTensor::Empty<float>(image);
      HostTensor half_out = HostTensor::Empty<TestType>(image), in_place = HostTensor::Empty<TestType>(image);
      REQUIRE(Run("rewire.fused", {&wide_x, &slope, &wide_y, &expected}, program) == "");
      REQUIRE(Run("rewire.fused", {&x, &slope, &y, &out}, program) == "");
      CHECK(out.values<float>() == expected.values<float>());
      REQUIRE(Run("rewire.fused", {&x, &slope, &y, &half_out}, program) == "");
      for (std::int64_t i = 0; i < x.size(); ++i)
        in_place.elements<TestType>()[i] = x.elements<TestType>()[i];
      REQUIRE(Run("rewire.fused", {&in_place, &slope, &y, &in_place}, program) == "");
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const auto wanted = TestType(expected.elements<float>()[i]).bits;
        REQUIRE(half_out.elements<TestType>()[i].bits == wanted);
        REQUIRE(in_place.elements<TestType>()[i].bits == wanted);
      }
    });
  }
  HostTensor wrong = HostTensor::Empty<double>({4}), out = HostTensor::Empty<float>({4});
  CHECK(Run("rewire.fused", {&wrong, &out}, Program("neg x0")) ==
        "TypeError: rewire.fused: an input has dtype f64, expected one of f32, bool, f16, bf16, u8, i8");
  CHECK(Run("rewire.fused", {&out, &wrong}, Program("neg x0")) ==
        "TypeError: rewire.fused: out has dtype f64, expected one of f32, f16, bf16, u8, i8");
}

TEMPLATE_TEST_CASE("fused: a 16-bit float for each short row", "", BFloat16, kernel::cpu::Float16) {
  const std::int64_t rows = 301, columns = 10;
  HostTensor x = HostTensor::Random({rows, columns}, 1), out = HostTensor::Empty<float>({rows, columns});
  HostTensor of_rows = HostTensor::Empty<TestType>({rows, 1});
  for (std::int64_t r = 0; r < rows; ++r)
    of_rows.elements<TestType>()[r] = TestType(static_cast<float>(r) * 0.5F);
  REQUIRE(Run("rewire.fused", {&x, &of_rows, &out}, Program("add x0 x1")) == "");
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const float term = static_cast<float>(of_rows.elements<TestType>()[i / columns]);
    wrong += out.elements<float>()[i] == x.elements<float>()[i] + term ? 0 : 1;
  }
  CHECK(wrong == 0);
}

// Bytes of every value, as many as the shape has.
template <typename Q>
HostTensor BytesOf(const Shape& shape, std::size_t seed) {
  HostTensor bytes = HostTensor::Empty<Q>(shape);
  for (std::int64_t i = 0; i < bytes.size(); ++i)
    bytes.elements<Q>()[i] = static_cast<Q>((static_cast<std::size_t>(i) * 37 + seed) % 256);
  return bytes;
}

TEMPLATE_TEST_CASE("fused: bytes are what their conversions make of them, by every instruction set", "",
                   std::uint8_t, std::int8_t) {
  const std::string zero = std::is_same_v<TestType, std::uint8_t> ? "131" : "-7";
  HostTensor a_scale = HostTensor::Of<float>({}, {0.037F}), b_scale = HostTensor::Of<float>({}, {0.3F});
  HostTensor a_zero = BytesOf<TestType>({}, 131), b_zero = BytesOf<TestType>({}, 5);
  if (!std::is_same_v<TestType, std::uint8_t>) a_zero = BytesOf<TestType>({}, 249);
  const std::string program =
      "dequantize x0 0.037 " + zero + "; dequantize x1 0.3 5; mul r0 r1; quantize r2 0.3 5";
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{300}, {300}}, {{3, 5}, {3, 5}},        {{2, 3, 700}, {3, 1}}, {{4, 6, 5}, {5}}, {{40, 16}, {16}},
      {{7}, {1}},     {{2, 700, 3}, {700, 1}}, {{9, 83}, {83}},       {{20003}, {}}};
  for (const auto& [shape, of_other] : shapes) {
    CAPTURE(shape, of_other);
    HostTensor a = BytesOf<TestType>(shape, 1), b = BytesOf<TestType>(of_other, 90);
    ForEachTarget([&, &shape = shape, &of_other = of_other] {
      HostTensor a_floats = HostTensor::Empty<float>(shape), b_floats = HostTensor::Empty<float>(of_other);
      HostTensor product = HostTensor::Empty<float>(shape), expected = HostTensor::Empty<TestType>(shape);
      REQUIRE(Run("rewire.dequantize_linear", {&a, &a_scale, &a_zero, &a_floats}) == "");
      REQUIRE(Run("rewire.dequantize_linear", {&b, &b_scale, &b_zero, &b_floats}) == "");
      REQUIRE(Run("rewire.mul", {&a_floats, &b_floats, &product}) == "");
      REQUIRE(Run("rewire.quantize_linear", {&product, &b_scale, &b_zero, &expected}) == "");
      HostTensor out = HostTensor::Empty<TestType>(shape), floats = HostTensor::Empty<float>(shape);
      REQUIRE(Run("rewire.fused", {&a, &b, &out}, {{"program", program.c_str()}}) == "");
      CHECK(out.values<TestType>() == expected.values<TestType>());
      // Without the last step the floats are the same, and with it they are rounded and not held.
      const std::string to_floats = program.substr(0, program.rfind(';'));
      REQUIRE(Run("rewire.fused", {&a, &b, &floats}, {{"program", to_floats.c_str()}}) == "");
      CHECK(floats.values<float>() == product.values<float>());
      REQUIRE(Run("rewire.fused", {&product, &floats}, Program("quantize x0 0.3 5")) == "");
      for (std::int64_t i = 0; i < floats.size(); ++i)
        REQUIRE(floats.elements<float>()[i] == std::nearbyint(product.elements<float>()[i] / 0.3F) + 5);
      // Over its input, and of a tensor that is dequantized in two ways.
      HostTensor in_place = BytesOf<TestType>(shape, 1);
      REQUIRE(Run("rewire.fused", {&in_place, &b, &in_place}, {{"program", program.c_str()}}) == "");
      CHECK(in_place.values<TestType>() == expected.values<TestType>());
      REQUIRE(Run("rewire.fused", {&a, &floats},
                  Program("dequantize x0 0.5 3; dequantize x0 0.25 0; sub r0 r1")) == "");
      for (std::int64_t i = 0; i < floats.size(); ++i) {
        const auto byte = static_cast<float>(a.elements<TestType>()[i]);
        REQUIRE(floats.elements<float>()[i] == (byte - 3) * 0.5F - byte * 0.25F);
      }
    });
  }
}

TEST_CASE("fused: results are rounded and held in the range of bytes") {
  HostTensor x = HostTensor::Of<float>({9}, {kNaN, -kInf, kInf, -0.5F, 0.5F, 1.5F, 254.5F, 255.5F, -128.5F});
  HostTensor out = HostTensor::Empty<std::uint8_t>({9}), with_sign = HostTensor::Empty<std::int8_t>({9});
  REQUIRE(Run("rewire.fused", {&x, &out}, Program("add x0 0")) == "");
  CHECK(out.values<std::uint8_t>() == std::vector<std::uint8_t>{0, 0, 255, 0, 0, 2, 254, 255, 0});
  REQUIRE(Run("rewire.fused", {&x, &with_sign}, Program("add x0 0")) == "");
  CHECK(with_sign.values<std::int8_t>() ==
        std::vector<std::int8_t>{-128, -128, 127, 0, 0, 2, 127, 127, -128});
  HostTensor one = HostTensor::Of<float>({1}, {3});
  REQUIRE(Run("rewire.fused", {&x, &one, &out}, Program("quantize x1 0.5 1")) == "");
  CHECK(out.values<std::uint8_t>() == std::vector<std::uint8_t>(9, 7));
  HostTensor floats = HostTensor::Empty<float>({9});
  CHECK(Run("rewire.fused", {&x, &floats}, Program("dequantize x0 2 1; neg r0")) ==
        "TypeError: rewire.fused: input x0 has dtype f32, expected u8 or i8, which the program dequantizes");
  REQUIRE(Run("rewire.fused", {&x, &floats}, Program("dequantize x0 2 1")) == "");
  CHECK(floats.values<float>()[4] == -1);
}

TEST_CASE("fused: truth values, and choosing by them") {
  HostTensor c = HostTensor::Of<std::uint8_t>({4}, {0, 1, 0, 7}), d = HostTensor::Of<bool>({4}, {0, 0, 1, 1});
  c.SetDType(kernel::DTypeOf<bool>());
  HostTensor x = HostTensor::Of<float>({4}, {1, 2, 3, 4}), out = HostTensor::Empty<float>({4});
  using Values = std::vector<float>;
  const auto run = [&](const char* program) {
    REQUIRE(Run("rewire.fused", {&c, &d, &x, &out}, Program(program)) == "");
    return out.values<float>();
  };
  CHECK(run("and x0 x1; where r0 x2 -1") == Values{-1, -1, -1, 4});
  CHECK(run("or x0 x1; where r0 -1 x2") == Values{1, -1, -1, -1});
  CHECK(run("not x0; where r0 x2 x1") == Values{1, 0, 3, 1});
  CHECK(run("where x0 5 x1; mul r0 x2") == Values{0, 10, 3, 20});
  CHECK(run("where 1 x2 x1; add r0 x0") == Values{1, 3, 3, 5});
  CHECK(run("where 0 x2 2; add r0 x0; add r1 x1") == Values{2, 3, 3, 4});
  CHECK(run("where x0 1 2; add r0 x1; add r1 x2") == Values{3, 3, 6, 6});
}

// The programs over tensors of these shapes, element by element.
void CheckBroadcast(const std::vector<Shape>& shapes, const Shape& of_out, bool in_place) {
  CAPTURE(shapes, of_out);
  std::vector<HostTensor> inputs;
  std::vector<HostTensor*> tensors;
  inputs.reserve(shapes.size());
  tensors.reserve(shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i)
    inputs.push_back(HostTensor::Random(shapes[i], static_cast<std::uint32_t>(i + 1)));
  for (HostTensor& input : inputs) tensors.push_back(&input);
  HostTensor sum = HostTensor::Empty<float>(of_out), out = HostTensor::Empty<float>(of_out);
  REQUIRE(Run("rewire.mul", {tensors[0], tensors[1], &sum}) == "");
  std::string program = "mul x0 x1";
  for (std::size_t i = 2; i < shapes.size(); ++i) {
    HostTensor next = HostTensor::Empty<float>(of_out);
    REQUIRE(Run("rewire.add", {&sum, tensors[i], &next}) == "");
    sum = next;
    program += "; add r" + std::to_string(i - 2) + " x" + std::to_string(i);
  }
  tensors.push_back(in_place ? tensors[0] : &out);
  REQUIRE(Run("rewire.fused", tensors, {{"program", program.c_str()}}) == "");
  REQUIRE(tensors.back()->values<float>() == sum.values<float>());
}

TEST_CASE("fused: inputs of all shapes") {
  for (bool in_place : {false, true}) {
    CheckBroadcast({{7}, {7}}, {7}, in_place);
    CheckBroadcast({{3000}, {1}}, {3000}, in_place);
    CheckBroadcast({{2, 3, 5, 16}, {16}, {2, 1, 1, 16}, {3, 1, 1}}, {2, 3, 5, 16}, in_place);
    CheckBroadcast({{2, 700, 3}, {700, 1}, {3}, {2, 1, 3}, {}}, {2, 700, 3}, in_place);
    // Runs of a few elements, more of them than a block has.
    for (const std::int64_t few : {2, 3, 4, 5}) {
      CheckBroadcast({{50, 7, few}, {50, 7, 1}, {50, 1, few}, {7, 1}, {few}, {50, 1, 1}}, {50, 7, few},
                     in_place);
      CheckBroadcast({{3, 400, few}, {3, 1, few}, {400, 1}}, {3, 400, few}, in_place);
    }
    CheckBroadcast({{3, 1300}, {3, 1}, {1300}, {1, 1300}}, {3, 1300}, in_place);
    CheckBroadcast({{40, 600}, {600}, {40, 1}}, {40, 600}, in_place);
    CheckBroadcast({{1}, {1, 1}}, {1, 1}, false);
  }
  CheckBroadcast({{5, 1}, {1, 9}}, {5, 9}, false);
  CheckBroadcast({{4, 1, 6}, {3, 1}, {6}}, {4, 3, 6}, false);
  CheckBroadcast({{0, 3}, {3}}, {0, 3}, false);
}

TEST_CASE("fused: strided inputs, and truth values that are broadcast") {
  HostTensor x = HostTensor::Random({6, 10}, 1), out = HostTensor::Empty<float>({10, 6});
  const std::vector<float> values = x.values<float>();
  x.SetView({10, 6}, {1, 10});
  HostTensor c = HostTensor::Of<bool>({6}, {1, 0, 0, 1, 1, 0});
  REQUIRE(Run("rewire.fused", {&x, &c, &out}, Program("where x1 x0 9")) == "");
  for (std::int64_t i = 0; i < 60; ++i) {
    const bool taken = i % 6 == 0 || i % 6 == 3 || i % 6 == 4;
    CHECK(out.elements<float>()[i] == (taken ? values[static_cast<std::size_t>(i % 6 * 10 + i / 6)] : 9));
  }
}

TEST_CASE("fused: every instruction set") {
  ForEachTarget([] {
    const auto run = ChooseFusedStepKernel();
    for (std::int64_t count = 0; count < 70; ++count) {
      std::vector<float> a, out(static_cast<std::size_t>(count) + 1, -7);
      for (std::int64_t i = 0; i < count; ++i) a.push_back(static_cast<float>(i % 13 - 6) / 4);
      const FusedElements operands[] = {{a.data(), 0}, {nullptr, 0.5F}};
      run(kernel::cpu::FusedCode::kMul, operands, {out.data()}, count);
      for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(out[i] == a[i] / 2);
      run(kernel::cpu::FusedCode::kSoftplus, operands, {out.data()}, count);
      for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(out[i] == Approx(std::log1p(std::exp(a[i]))));
      REQUIRE(out.back() == -7);
    }
  });
}

TEST_CASE("fused: truth values in rows of every length, by every instruction set") {
  ForEachTarget([] {
    const auto truths = ChooseFusedConversions().truths;
    constexpr std::uint8_t kBytes[] = {0, 1, 255, 0, 128, 0, 0, 2};
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<std::uint8_t> from(count);
      for (std::size_t i = 0; i < count; ++i) from[i] = kBytes[i * 5 % 8];
      std::vector<float> to(count + 1, -7);
      truths(from.data(), static_cast<std::int64_t>(count), to.data());
      for (std::size_t i = 0; i < count; ++i) REQUIRE(to[i] == (from[i] != 0 ? 1 : 0));
      REQUIRE(to.back() == -7);
    }
  });
}

TEST_CASE("fused: programs that are refused") {
  const auto error = [](const std::string& program) {
    return StockKernel("rewire.fused", {{"program", program.c_str()}}).error();
  };
  CHECK(error("add x0 x1") == "");
  CHECK(error("") ==
        "ValueError: rewire.fused: attribute 'program': step 0 is '', expected an operation of rewire.fused");
  CHECK(error("conv x0 x1") ==
        "ValueError: rewire.fused: attribute 'program': step 0 is 'conv x0 x1', expected an operation of "
        "rewire.fused");
  CHECK(error("add x0 x1 x2") ==
        "ValueError: rewire.fused: attribute 'program': step 0 is 'add x0 x1 x2', expected 2 operands");
  CHECK(
      error("neg x0; add x1") ==
      "ValueError: rewire.fused: attribute 'program': operand '' of step 1 is no input below x8, no earlier "
      "result and no number");
  for (const char* operand : {"x8", "x-1", "x", "r1", "r0x", "1.0f", "0x1"}) {
    CHECK(error(std::string("neg x0; neg ") + operand) ==
          std::string("ValueError: rewire.fused: attribute 'program': operand '") + operand +
              "' of step 1 is no input below x8, no earlier result and no number");
  }
  CHECK(error("clip x0 x1 2") ==
        "ValueError: rewire.fused: attribute 'program': operand 1 of step 0 ('clip x0 x1 2') must be a "
        "number");
  CHECK(
      error("quantize x0 0.5 1.5") ==
      "ValueError: rewire.fused: attribute 'program': step 0 is 'quantize x0 0.5 1.5', expected a zero from "
      "-128 to 255");
  CHECK(error("neg x0; neg x0") == "ValueError: rewire.fused: attribute 'program': no step reads r0");
  std::string many = "neg x0", wide;
  for (int i = 0; i < FusedProgram::kMostSteps; ++i) many += "; neg r" + std::to_string(i);
  CHECK(error(many) == "ValueError: rewire.fused: attribute 'program' has more than 48 steps");
  for (int i = 0; i < 9; ++i) wide += "neg x0; ";
  wide += "add r0 r1";
  for (int i = 2; i < 9; ++i) wide += "; add r" + std::to_string(i + 7) + " r" + std::to_string(i);
  CHECK(error(wide) ==
        "ValueError: rewire.fused: attribute 'program' needs more than 8 results at a time, at step 8");
}

TEST_CASE("fused: calls that are refused") {
  HostTensor x = HostTensor::Random({4}, 1), y = HostTensor::Random({3}, 2);
  HostTensor out = HostTensor::Empty<float>({4}), ints = HostTensor::Of<std::int64_t>({4}, {1, 2, 3, 4});
  CHECK(Run("rewire.fused", {&x, &out}, Program("add x0 x1")) ==
        "TypeError: rewire.fused: expected 2 inputs and out, as the program reads them, got 2 arguments");
  CHECK(Run("rewire.fused", {&x, &ints, &out}, Program("add x0 x1")) != "");
  CHECK(Run("rewire.fused", {&x, &y, &out}, Program("add x0 x1")) != "");
  CHECK(Run("rewire.fused", {&y, &out}, Program("neg x0")) != "");
}

}  // namespace
}  // namespace rewire::test
