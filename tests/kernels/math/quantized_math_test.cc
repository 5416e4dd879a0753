// SPDX-License-Identifier: Apache-2.0
// Between floats and 8-bit integers, by every instruction set, against the definition.
#include "rewire/kernels/cpu/math/quantized_math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ChooseQuantizedMath;
using kernel::cpu::ChooseWidenRange;
using kernel::cpu::Float16;
using kernel::cpu::Quantization;
using kernel::cpu::QuantizedMath;

template <typename Q>
Q QuantizedByDefinition(float value, const Quantization& by) {
  const float scaled = value / by.scale;
  if (std::isnan(scaled)) return static_cast<Q>(by.least);
  const float whole = std::nearbyint(scaled) + static_cast<float>(by.zero);
  return static_cast<Q>(std::min(std::max(whole, static_cast<float>(by.least)), static_cast<float>(by.most)));
}

// Halves, what is far out of range and what is no number, and then many others.
std::vector<float> Values(std::size_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.5F,      1.5F,       -0.5F,         -2.5F,  1e30F,  -1e30F,
                               kInfinity, -kInfinity, std::nanf(""), 63.75F, -64.25F};
  while (values.size() < count) values.push_back(static_cast<float>(values.size() * 37 % 401) / 8 - 25);
  values.resize(count);
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("floats become 8-bit integers and back as defined, by every instruction set", "",
                   std::uint8_t, std::int8_t) {
  using Limits = std::numeric_limits<TestType>;
  ForEachTarget([] {
    const QuantizedMath<TestType> math = ChooseQuantizedMath<TestType>();
    const Quantization whole{0.5F, 3, Limits::min(), Limits::max()};
    const Quantization held{0.3F, 7, 7, 90};
    const Quantization coarse{1.713F, 11, Limits::min(), Limits::max()};
    for (std::size_t count : {1, 3, 8, 15, 16, 17, 40, 67, 4099}) {
      INFO(count << " elements");
      const auto size = static_cast<std::int64_t>(count);
      const std::vector<float> values = Values(count);
      for (const Quantization& by : {whole, held}) {
        std::vector<TestType> stored(count + 1, 99), expected;
        math.quantize(values.data(), size, by, stored.data());
        for (const float value : values) expected.push_back(QuantizedByDefinition<TestType>(value, by));
        expected.push_back(99);
        REQUIRE(stored == expected);

        std::vector<float> floats(count + 1, -77.0F), exact;
        math.dequantize(stored.data(), size, by, floats.data());
        for (std::size_t i = 0; i < count; ++i)
          exact.push_back(static_cast<float>(stored[i] - by.zero) * by.scale);
        exact.push_back(-77.0F);
        REQUIRE(floats == exact);

        std::vector<TestType> other(count), sums(count + 1, 99), of_chain;
        for (std::size_t i = 0; i < count; ++i) other[i] = static_cast<TestType>(i * 29);
        for (const std::int64_t step : {0, 1}) {
          const auto other_at = [&](std::size_t i) {
            return static_cast<float>(other[step == 0 ? 0 : i] - whole.zero) * whole.scale;
          };
          // Many elements and one other go another way if results are held in the range of all bytes.
          for (const Quantization& to : {held, coarse}) {
            std::vector<TestType> products(count + 1, 99), of_products;
            of_chain.clear();
            math.add(stored.data(), by, other.data(), step, whole, size, to, sums.data());
            math.mul(stored.data(), by, other.data(), step, whole, size, to, products.data());
            for (std::size_t i = 0; i < count; ++i) {
              of_chain.push_back(QuantizedByDefinition<TestType>(exact[i] + other_at(i), to));
              of_products.push_back(QuantizedByDefinition<TestType>(exact[i] * other_at(i), to));
            }
            of_chain.push_back(99);
            of_products.push_back(99);
            REQUIRE(sums == of_chain);
            REQUIRE(products == of_products);
          }
        }
      }
    }
  });
}

TEST_CASE("floats are divided by a scale as a division does it, by every instruction set") {
  ForEachTarget([] {
    const QuantizedMath<std::uint8_t> math = ChooseQuantizedMath<std::uint8_t>();
    // Numbers around those halfway between two results, where the last bit of a quotient decides.
    for (const float scale : {0.1F, 0.0037F, 3.0F, 1.0F / 3, 7e-20F, 7e20F, 1e-30F, 1e30F, 1e-45F, 3e38F}) {
      for (const std::int32_t zero : {0, 131}) {
        INFO("scale " << scale << ", zero " << zero);
        const Quantization by{scale, zero, 0, 255};
        std::vector<float> values;
        for (int i = -140; i < 260; ++i) {
          const float half = (static_cast<float>(i) + 0.5F) * scale;
          const float below = std::nextafter(half, -INFINITY), above = std::nextafter(half, INFINITY);
          values.insert(values.end(), {std::nextafter(below, -INFINITY), below, half, above,
                                       std::nextafter(above, INFINITY)});
        }
        values.insert(values.end(), {INFINITY, -INFINITY, std::nanf(""), 3e38F, -3e38F, 1e-45F, 0.0F, -0.0F});
        std::vector<std::uint8_t> stored(values.size()), expected;
        for (const float value : values) expected.push_back(QuantizedByDefinition<std::uint8_t>(value, by));
        math.quantize(values.data(), static_cast<std::int64_t>(values.size()), by, stored.data());
        REQUIRE(stored == expected);
      }
    }
  });
}

TEMPLATE_TEST_CASE("each float has a scale and a zero of its own, by every instruction set", "", std::uint8_t,
                   std::int8_t) {
  using Limits = std::numeric_limits<TestType>;
  ForEachTarget([] {
    const QuantizedMath<TestType> math = ChooseQuantizedMath<TestType>();
    for (std::size_t count : {1, 3, 8, 15, 16, 17, 40, 67}) {
      const auto size = static_cast<std::int64_t>(count);
      const std::vector<float> values = Values(count);
      std::vector<float> scales;
      std::vector<TestType> zeros;
      for (std::size_t i = 0; i < count; ++i) {
        scales.push_back(0.25F + 0.125F * static_cast<float>(i % 5));
        zeros.push_back(static_cast<TestType>(i * 31));
      }
      for (const bool has_zeros : {true, false}) {
        std::vector<TestType> stored(count + 1, 99), expected;
        math.quantize_each(values.data(), size, scales.data(), has_zeros ? zeros.data() : nullptr,
                           stored.data());
        std::vector<float> floats(count + 1, -77.0F), exact;
        math.dequantize_each(stored.data(), size, scales.data(), has_zeros ? zeros.data() : nullptr,
                             floats.data());
        for (std::size_t i = 0; i < count; ++i) {
          const Quantization by{scales[i], has_zeros ? zeros[i] : 0, Limits::min(), Limits::max()};
          expected.push_back(QuantizedByDefinition<TestType>(values[i], by));
          exact.push_back(static_cast<float>(stored[i] - by.zero) * by.scale);
        }
        expected.push_back(99);
        exact.push_back(-77.0F);
        REQUIRE(stored == expected);
        REQUIRE(floats == exact);
      }
    }
  });
}

// Half of these sums lie between two integers if each step is rounded. Products that are fused with the sum
// would move some of them.
TEMPLATE_TEST_CASE("each step of a quantized sum is rounded, by every instruction set", "", std::uint8_t,
                   std::int8_t) {
  using Limits = std::numeric_limits<TestType>;
  ForEachTarget([] {
    const Quantization term{0.1F, 0, 0, 0}, sum{0.2F, 0, Limits::min(), Limits::max()};
    std::vector<TestType> every(256);
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<TestType>(i);
    std::vector<TestType> sums(every.size());
    std::size_t wrong = 0;
    for (const TestType stored : every) {
      const std::vector<TestType> same(every.size(), stored);
      ChooseQuantizedMath<TestType>().add(same.data(), term, every.data(), 1, term, 256, sum, sums.data());
      const volatile float a = static_cast<float>(stored) * term.scale;
      for (std::size_t i = 0; i < every.size(); ++i) {
        const volatile float b = static_cast<float>(every[i]) * term.scale;
        wrong += sums[i] == QuantizedByDefinition<TestType>(a + b, sum) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  });
}

TEMPLATE_TEST_CASE("sums are scaled, rounded and held as defined, by every instruction set", "", std::uint8_t,
                   std::int8_t) {
  ForEachTarget([] {
    const QuantizedMath<TestType> math = ChooseQuantizedMath<TestType>();
    const Quantization by{8.0F, 3, std::numeric_limits<TestType>::min(),
                          std::numeric_limits<TestType>::max()};
    for (std::size_t count : {1, 3, 16, 19, 50}) {
      for (const std::int64_t step : {0, 1}) {
        INFO(count << " elements, step " << step);
        std::vector<std::int32_t> sums;
        std::vector<float> scales;
        for (std::size_t i = 0; i < count; ++i) {
          sums.push_back(i == 2 ? 2147483647 : static_cast<std::int32_t>(i * 12 % 97) * 6 - 290);
          scales.push_back(0.5F + static_cast<float>(i % 3));
        }
        std::vector<TestType> stored(count + 1, 99), expected;
        math.requantize(sums.data(), static_cast<std::int64_t>(count), 2.0F, scales.data(), step, by,
                        stored.data());
        for (std::size_t i = 0; i < count; ++i) {
          const float factor = 2.0F * scales[step == 0 ? 0 : i] / 8.0F;
          const float whole = std::nearbyint(static_cast<float>(sums[i]) * factor) + 3;
          expected.push_back(static_cast<TestType>(
              std::min(std::max(whole, static_cast<float>(by.least)), static_cast<float>(by.most))));
        }
        expected.push_back(99);
        REQUIRE(stored == expected);
      }
    }
  });
}

TEST_CASE("the range of floats leaves out what is no number, by every instruction set") {
  ForEachTarget([] {
    for (std::size_t count : {0, 1, 5, 16, 50}) {
      std::vector<float> values(count, 0.25F);
      if (count > 2) values[count - 1] = -3;
      if (count > 2) values[count / 2] = 7;
      if (count > 3) values[1] = std::nanf("");
      float least = 0, most = 0;
      ChooseWidenRange()(values.data(), static_cast<std::int64_t>(count), &least, &most);
      CHECK(least == (count > 2 ? -3.0F : 0.0F));
      CHECK(most == (count > 2 ? 7.0F : count > 0 ? 0.25F : 0.0F));
    }
  });
}

TEMPLATE_TEST_CASE("floats of 16 bits become integers and back as those of 32 bits do", "", std::uint8_t,
                   std::int16_t) {
  // One scale, one for each channel in long runs and in short ones, and one for each block.
  const Shape x_shape = {6, 500};
  const std::pair<Shape, AttributeList> cases[] = {
      {{}, {}}, {{6}, {{"axis", 0}}}, {{500}, {{"axis", 1}}}, {{6, 125}, {{"axis", 1}, {"block_size", 4}}}};
  for (const auto& [shape, attributes] : cases) {
    CAPTURE(shape);
    HostTensor wide = HostTensor::Random(x_shape, 7), narrow = HostTensor::Empty<Float16>(x_shape);
    for (std::int64_t i = 0; i < wide.size(); ++i) {
      narrow.elements<Float16>()[i] = Float16(9 * wide.elements<float>()[i]);
      wide.elements<float>()[i] = static_cast<float>(narrow.elements<Float16>()[i]);
    }
    HostTensor scale = HostTensor::Empty<float>(shape), zero = HostTensor::Empty<TestType>(shape);
    for (std::int64_t i = 0; i < scale.size(); ++i) {
      scale.elements<float>()[i] = 0.125F + 0.01F * static_cast<float>(i % 9);
      zero.template elements<TestType>()[i] = static_cast<TestType>(i % 11);
    }
    HostTensor stored = HostTensor::Empty<TestType>(x_shape), expected = HostTensor::Empty<TestType>(x_shape);
    REQUIRE(Run("rewire.quantize_linear", {&narrow, &scale, &zero, &stored}, attributes) == "");
    REQUIRE(Run("rewire.quantize_linear", {&wide, &scale, &zero, &expected}, attributes) == "");
    CHECK(stored.template values<TestType>() == expected.template values<TestType>());
    REQUIRE(Run("rewire.dequantize_linear", {&stored, &scale, &zero, &narrow}, attributes) == "");
    REQUIRE(Run("rewire.dequantize_linear", {&stored, &scale, &zero, &wide}, attributes) == "");
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < wide.size(); ++i)
      wrong += narrow.elements<Float16>()[i].bits == Float16(wide.elements<float>()[i]).bits ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("dynamic quantization covers a range that several threads find") {
  HostTensor x = HostTensor::Random({300, 301}, 1);
  x.elements<float>()[70000] = -4;
  x.elements<float>()[90000] = 6.2F;
  HostTensor out = HostTensor::Empty<std::uint8_t>({300, 301});
  HostTensor scale = HostTensor::Empty<float>({}), zero = HostTensor::Empty<std::uint8_t>({});
  REQUIRE(Run("rewire.dynamic_quantize_linear", {&x, &out, &scale, &zero}) == "");
  const float step = scale.elements<float>()[0];
  CHECK(step == (6.2F - -4.0F) / 255);
  CHECK(zero.elements<std::uint8_t>()[0] == 100);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const float stored = std::nearbyint(x.elements<float>()[i] / step) + 100;
    REQUIRE(static_cast<float>(out.elements<std::uint8_t>()[i]) == stored);
  }
}

TEMPLATE_TEST_CASE("slopes of negative numbers are as defined, by every instruction set", "", std::uint8_t,
                   std::int8_t) {
  ForEachTarget([] {
    const QuantizedMath<TestType> math = ChooseQuantizedMath<TestType>();
    const Quantization from{0.25F, 20, 0, 0};
    const Quantization by{0.125F, 90, std::numeric_limits<TestType>::min(),
                          std::numeric_limits<TestType>::max()};
    for (std::size_t period : {1, 3, 10, 16, 28, 64}) {
      for (std::size_t rows : {1, 2, 13}) {
        INFO(rows << " rows of " << period);
        std::vector<float> slopes;
        for (std::size_t i = 0; i < period + 16; ++i)
          slopes.push_back(static_cast<float>(i % period) * 0.11F - 0.5F);
        std::vector<TestType> x(rows * period), found(x.size() + 1, 99), expected;
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<TestType>(i * 37 + 5);
          float value = static_cast<float>(x[i] - from.zero) * from.scale;
          if (value < 0) value *= slopes[i % period];
          expected.push_back(QuantizedByDefinition<TestType>(value, by));
        }
        expected.push_back(99);
        math.prelu(x.data(), from, slopes.data(), static_cast<std::int64_t>(period),
                   static_cast<std::int64_t>(x.size()), by, found.data());
        REQUIRE(found == expected);
      }
    }
  });
}

TEST_CASE("prelu_quantized does as its parts do, and refuses what does not fit") {
  HostTensor x = HostTensor::Of<std::int8_t>({2, 3}, {-10, 0, 10, 100, -128, 127});
  HostTensor slope = HostTensor::Of<float>({3}, {0.5F, 2, -1});
  HostTensor out = HostTensor::Empty<std::int8_t>({2, 3});
  const AttributeList attributes = {{"x_scale", 0.5}, {"x_zero", std::int64_t{-5}}, {"scale", 1.0}};
  REQUIRE(Run("rewire.prelu_quantized", {&x, &slope, &out}, attributes) == "");
  CHECK(out.values<std::int8_t>() == std::vector<std::int8_t>{-1, 2, 8, 52, -123, 66});
  HostTensor shorter = HostTensor::Empty<float>({2});
  CHECK(Run("rewire.prelu_quantized", {&x, &shorter, &out}, attributes) ==
        "ValueError: rewire.prelu_quantized: slope has shape [2], expected [3]");
  HostTensor scalar = HostTensor::Of<std::int8_t>({}, {1});
  CHECK(Run("rewire.prelu_quantized", {&scalar, &slope, &scalar}, attributes) != "");
  HostTensor single = HostTensor::Empty<std::int8_t>({});
  CHECK(Run("rewire.prelu_quantized", {&scalar, &slope, &single}, attributes) ==
        "ValueError: rewire.prelu_quantized: x has shape [], expected at least one axis");
}

TEMPLATE_TEST_CASE("mean_quantized does as its parts do, and refuses what does not fit", "", std::uint8_t,
                   std::int8_t) {
  // Short and long rows, more of them than sums of 16 bits hold, and such that are no multiple of the lanes.
  for (const Shape& shape :
       {Shape{3, 1, 1}, Shape{2, 7, 3}, Shape{5, 140, 1}, Shape{2, 700, 33}, Shape{1, 300, 64},
        Shape{2, 520, 65}, Shape{1, 9, 200}, Shape{2, 21, 3}, Shape{3, 63, 1}}) {
    INFO("x " << shape[0] << " x " << shape[1] << " x " << shape[2]);
    HostTensor x = HostTensor::Empty<TestType>(shape);
    // The first sums are as large as they can be.
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.template elements<TestType>()[i] = i < x.size() / 2 ? std::numeric_limits<TestType>::max()
                                                            : static_cast<TestType>(i * 37 + i / 5 * 101);
    const auto stored = x.template values<TestType>();
    HostTensor out = HostTensor::Empty<TestType>({shape[0], shape[2]});
    REQUIRE(Run("rewire.mean_quantized", {&x, &out},
                {{"axes", std::vector<std::int64_t>{1}},
                 {"x_scale", 0.5},
                 {"x_zero", std::int64_t{3}},
                 {"scale", 0.375},
                 {"zero", std::int64_t{5}}}) == "");
    std::vector<TestType> expected;
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[2]; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < shape[1]; ++k)
          sum += stored[static_cast<std::size_t>((i * shape[1] + k) * shape[2] + j)] - 3;
        const auto mean = static_cast<float>(sum * (0.5 / static_cast<double>(shape[1])));
        expected.push_back(QuantizedByDefinition<TestType>(
            mean, {0.375F, 5, std::numeric_limits<TestType>::min(), std::numeric_limits<TestType>::max()}));
      }
    }
    CHECK(out.template values<TestType>() == expected);
  }
  HostTensor x = HostTensor::Empty<TestType>({2, 3, 4});
  HostTensor out = HostTensor::Empty<TestType>({1, 3, 1});
  const AttributeList attributes = {
      {"axes", std::vector<std::int64_t>{0, 2}}, {"x_scale", 0.5}, {"scale", 1.0}};
  CHECK(Run("rewire.mean_quantized", {&x, &out}, attributes) ==
        "ValueError: rewire.mean_quantized: axes of x with shape [2, 3, 4] lie apart, expected successive "
        "ones");
  HostTensor larger = HostTensor::Empty<TestType>({2, 4});
  CHECK(Run("rewire.mean_quantized", {&x, &larger},
            {{"axes", std::vector<std::int64_t>{1, 2}}, {"x_scale", 0.5}, {"scale", 1.0}}) ==
        "ValueError: rewire.mean_quantized: out has shape [2, 4], expected as many elements as [2, 1]");
}

TEST_CASE("add_quantized adds as its parts do, and refuses what does not fit") {
  HostTensor a = HostTensor::Of<std::int8_t>({2, 2}, {-128, 0, 5, 127});
  HostTensor b = HostTensor::Of<std::int8_t>({2, 2}, {-128, 9, -7, 127});
  HostTensor out = HostTensor::Empty<std::int8_t>({2, 2});
  const AttributeList attributes = {
      {"a_scale", 0.5}, {"b_scale", 0.25}, {"scale", 1.0}, {"b_zero", 1}, {"least", 0}};
  REQUIRE(Run("rewire.add_quantized", {&a, &b, &out}, attributes) == "");
  CHECK(out.values<std::int8_t>() == std::vector<std::int8_t>{0, 2, 0, 95});
  HostTensor row = HostTensor::Of<std::int8_t>({2}, {1, 2});
  CHECK(Run("rewire.add_quantized", {&a, &row, &out}, attributes) ==
        "ValueError: rewire.add_quantized: b has shape [2], expected [2, 2]");
  CHECK(Run("rewire.add_quantized", {&a, &b, &out}, {{"a_scale", 1.0}}).find("'b_scale' is missing") !=
        std::string::npos);
}

}  // namespace rewire::test
