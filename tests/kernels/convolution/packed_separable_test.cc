// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the product behind it as one kernel: gives what both give one after the other.
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;
using kernel::cpu::BFloat16;

struct SeparableCase {
  Shape x;  // the channels last
  Ints kernel, strides, dilations, pads;
  Shape positions;  // of the output
  std::int64_t columns;
};

Shape WithChannels(Shape dims, std::int64_t channels) {
  dims.push_back(channels);
  return dims;
}

struct Operands {
  HostTensor x, taps, taps_bias, w, bias, addend, out;
  AttributeList window;
};

Operands OperandsOf(const SeparableCase& c) {
  const std::int64_t channels = c.x.back();
  std::int64_t count = 1;
  for (const std::int64_t side : c.kernel) count *= side;
  HostTensor matrix = HostTensor::Random({channels, c.columns}, 4);
  HostTensor packed = HostTensor::Empty<float>({(c.columns + 15) / 16 * 16, channels});
  REQUIRE(Run("rewire.packed.pack", {&matrix, &packed}, {{"order", "IO"}}) == "");
  const Shape shape = WithChannels(c.positions, c.columns);
  return {HostTensor::Random(c.x, 1),
          HostTensor::Random({count, channels}, 2),
          HostTensor::Random({channels}, 3),
          std::move(packed),
          HostTensor::Random({c.columns}, 5),
          HostTensor::Random(shape, 6),
          HostTensor::Empty<float>(shape),
          {{"kernel_shape", c.kernel}, {"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}}};
}

AttributeList With(AttributeList attributes, const AttributeList& more) {
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}

// One after the other, with swish between both, and what is left below 0 is 0 at the end.
HostTensor Expected(const SeparableCase& c, Operands& of, bool biases, bool addend) {
  const std::int64_t channels = c.x.back();
  HostTensor none = HostTensor::Empty<float>({0});
  HostTensor between = HostTensor::Empty<float>(WithChannels(c.positions, channels)), out = of.out;
  REQUIRE(Run("rewire.packed.depthwise", {&of.x, &of.taps, biases ? &of.taps_bias : &none, &between},
              With(of.window, {{"channels", channels}, {"activation", "swish"}, {"post_scale", 2.0}})) == "");
  REQUIRE(
      Run("rewire.packed.conv",
          {&between, &of.w, biases ? &of.bias : &none, addend ? &of.addend : &none, &out},
          {{"channels", c.columns}, {"kernel_shape", Ints(c.kernel.size(), 1)}, {"activation", "relu"}}) ==
      "");
  return out;
}

AttributeList Attributes(const SeparableCase& c, const Operands& of) {
  return With(of.window, {{"channels", c.columns},
                          {"activation", "relu"},
                          {"depthwise_activation", "swish"},
                          {"depthwise_post_scale", 2.0}});
}

void CheckClose(const std::vector<float>& given, const std::vector<float>& expected, float most) {
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!(std::fabs(given[i] - expected[i]) <= most))
      FAIL("element " << i << " is " << given[i] << ", expected " << expected[i]);
  }
}

// Little between both, many lines that go together, lines that are cut into pieces, a signal, a volume.
const SeparableCase kCases[] = {
    {{2, 7, 9, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {2, 7, 9}, 20},
    {{1, 1, 1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1, 1}, 1},
    {{2, 50, 61, 24}, {5, 3}, {1, 2}, {1, 1}, {2, 1, 2, 1}, {2, 50, 31}, 40},
    {{3, 41, 33, 40}, {3, 3}, {2, 1}, {2, 3}, {2, 3, 2, 3}, {3, 21, 33}, 33},
    {{1, 3, 700, 65}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {1, 3, 700}, 17},
    {{1, 70, 4096}, {3}, {1}, {1}, {1, 1}, {1, 70}, 16},
    {{1, 9, 21, 20, 24}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 9, 21, 20}, 36}};

TEST_CASE("a separable convolution is a depthwise one and a product") {
  for (const SeparableCase& c : kCases) {
    CAPTURE(c.x);
    Operands of = OperandsOf(c);
    for (const bool biases : {true, false}) {
      for (const bool addend : {true, false}) {
        HostTensor none = HostTensor::Empty<float>({0});
        const HostTensor expected = Expected(c, of, biases, addend);
        REQUIRE(Run("rewire.packed.separable",
                    {&of.x, &of.taps, biases ? &of.taps_bias : &none, &of.w, biases ? &of.bias : &none,
                     addend ? &of.addend : &none, &of.out},
                    Attributes(c, of)) == "");
        CheckClose(of.out.values<float>(), expected.values<float>(), 1e-3F);
      }
    }
  }
}

TEST_CASE("a separable convolution writes over its addend, and bf16") {
  for (const SeparableCase& c : kCases) {
    CAPTURE(c.x);
    Operands of = OperandsOf(c);
    const std::vector<float> expected = Expected(c, of, true, true).values<float>();
    HostTensor rounded = HostTensor::Empty<BFloat16>(of.out.shape());
    REQUIRE(Run("rewire.packed.separable",
                {&of.x, &of.taps, &of.taps_bias, &of.w, &of.bias, &of.addend, &rounded},
                Attributes(c, of)) == "");
    REQUIRE(Run("rewire.packed.separable",
                {&of.x, &of.taps, &of.taps_bias, &of.w, &of.bias, &of.addend, &of.addend},
                Attributes(c, of)) == "");
    const std::vector<float> given = of.addend.values<float>();
    CheckClose(given, expected, 1e-3F);
    HostTensor wide = HostTensor::Empty<float>(of.out.shape());
    REQUIRE(Run("rewire.cast", {&rounded, &wide}) == "");
    const std::vector<float> floats = wide.values<float>();
    for (std::size_t i = 0; i < floats.size(); ++i) CHECK(std::fabs(floats[i] - given[i]) <= given[i] / 256);
  }
}

TEST_CASE("a separable convolution of no channels gives its bias and addend") {
  HostTensor x = HostTensor::Empty<float>({1, 3, 4, 0}), taps = HostTensor::Empty<float>({1, 0});
  HostTensor none = HostTensor::Empty<float>({0}), w = HostTensor::Empty<float>({16, 0});
  HostTensor bias = HostTensor::Of<float>({1}, {5}), out = HostTensor::Empty<float>({1, 3, 4, 1});
  REQUIRE(Run("rewire.packed.separable", {&x, &taps, &none, &w, &bias, &out},
              {{"channels", 1}, {"kernel_shape", Ints{1, 1}}}) == "");
  CHECK(out.values<float>() == std::vector<float>(12, 5));
}

TEST_CASE("separable convolutions refuse what does not fit") {
  const SeparableCase& c = kCases[0];
  Operands of = OperandsOf(c);
  const auto run = [&](HostTensor& x, HostTensor& taps, HostTensor& taps_bias, HostTensor& w) {
    return Run("rewire.packed.separable", {&x, &taps, &taps_bias, &w, &of.bias, &of.out}, Attributes(c, of));
  };
  CHECK(run(of.x, of.taps, of.taps_bias, of.w) == "");
  HostTensor few_taps = HostTensor::Random({8, 5}, 1), short_bias = HostTensor::Random({4}, 1);
  CHECK(run(of.x, few_taps, of.taps_bias, of.w) ==
        "ValueError: rewire.packed.separable: taps has shape [8, 5], expected [9, 5]");
  CHECK(run(of.x, of.taps, short_bias, of.w) ==
        "ValueError: rewire.packed.separable: bias has shape [4], expected [5]");
  HostTensor unpacked = HostTensor::Random({20, 5}, 1), pairs = HostTensor::Empty<BFloat16>({32, 6});
  CHECK(run(of.x, of.taps, of.taps_bias, unpacked) ==
        "ValueError: rewire.packed.separable: w has shape [20, 5], expected [32, 5]");
  CHECK(run(of.x, of.taps, of.taps_bias, pairs) ==
        "TypeError: rewire.packed.separable: w has dtype bf16, expected one of f32, f16");
  HostTensor doubles = HostTensor::Empty<double>({9, 5});
  CHECK(run(of.x, doubles, of.taps_bias, of.w) ==
        "TypeError: rewire.packed.separable: taps has dtype f64, expected f32 as x");
  HostTensor wide = HostTensor::Random({2, 7, 9, 4097}, 1);
  CHECK(run(wide, of.taps, of.taps_bias, of.w) ==
        "ValueError: rewire.packed.separable: x has shape [2, 7, 9, 4097], expected at most 4096 channels");
  CHECK(Run("rewire.packed.separable", {&of.x, &of.taps, &of.taps_bias, &of.w, &of.bias, &of.out},
            With(Attributes(c, of), {{"depthwise_gamma", 1.0}}))
            .find("unknown attribute 'depthwise_gamma'") != std::string::npos);
}

}  // namespace
}  // namespace rewire::test
