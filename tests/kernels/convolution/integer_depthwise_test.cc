// SPDX-License-Identifier: Apache-2.0
// Depthwise integer convolutions by packed weights against the kernels that multiply one by one: both are
// exact.
#include "rewire/kernels/cpu/convolution/integer_depthwise.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/product/packed_bytes.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ArrangedBytes;
using kernel::cpu::ChooseIntegerDepthwiseKernel;
using kernel::cpu::DepthwiseGroups;
using kernel::cpu::IntegerDepthwise;
using kernel::cpu::IntegerDepthwiseKernel;
using kernel::cpu::PaddedDepth;

// One row of quads: four lines of an image that are the rows of a window, but for the last in each quad.
struct LineCase {
  std::int64_t channels, input, columns, stride, dilation, count;
  bool is_signed, w_zero;
};

void CheckLine(const IntegerDepthwiseKernel& kernel, const LineCase& c) {
  INFO(c.channels << " channels, " << c.columns << " columns, " << c.stride << " and " << c.dilation
                  << " apart");
  const std::int64_t rows = 3, column = -2;
  HostTensor x = RandomBytes<std::uint8_t>({rows, c.input, c.channels}, 1);
  HostTensor w = RandomBytes<std::int8_t>({c.channels, rows, c.columns}, 2);
  Packed packed = Pack(w, c.channels, rows * c.columns, "OI", c.columns);
  HostTensor zeros = RandomBytes<std::int8_t>({c.channels}, 3);
  const auto xs = x.values<std::uint8_t>();
  const auto ws = w.values<std::int8_t>(), w_zeros = zeros.values<std::int8_t>();
  std::vector<std::int32_t> start, zero, out(At(c.count * c.channels + 1), -77);
  for (std::int64_t j = 0; j < c.channels; ++j) start.push_back(static_cast<std::int32_t>(j * 1000 - 5));
  for (const std::int8_t value : w_zeros) zero.push_back(value);
  HostTensor arranged =
      HostTensor::Empty<std::uint8_t>({DepthwiseGroups(c.channels) * ArrangedBytes(c.columns) + 64});
  IntegerDepthwise call{};
  call.channels = c.channels;
  call.input = c.input;
  call.stride = c.stride;
  call.columns = c.columns;
  call.rows = 1;
  call.dilation = c.dilation;
  call.spacing = c.stride == c.dilation ? c.stride : 1;
  call.end = x.elements<std::uint8_t>().end();
  call.is_signed = c.is_signed;
  call.border = 100;
  call.w = packed.w.elements<std::int8_t>().begin();
  call.start = start.data();
  call.w_zero = c.w_zero ? zero.data() : nullptr;
  for (std::int64_t i = 0; i < c.columns; ++i) call.taps[At(i)] = 0x00010101;
  const auto address = reinterpret_cast<std::uintptr_t>(arranged.elements<std::uint8_t>().begin());
  call.arranged = arranged.elements<std::uint8_t>().begin() + (64 - address % 64) % 64;
  // The second row of the window lies beyond the border.
  const std::uint8_t* from = x.elements<std::uint8_t>().begin();
  const std::uint8_t* lines[] = {from, nullptr, from + 2 * c.input * c.channels, nullptr};
  for (std::int64_t group = 0; group < DepthwiseGroups(c.channels); ++group) {
    kernel.arrange(call, group);
    kernel.run(call, group, lines, column, c.count, out.data());
  }
  for (std::int64_t i = 0; i < c.count * c.channels; ++i) {
    const std::int64_t j = i % c.channels;
    std::int32_t sum = start[At(j)];
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t t = 0; t < c.columns; ++t) {
        const std::int64_t at = column + i / c.channels * c.stride + t * c.dilation;
        std::int32_t value = 100;
        if (row != 1 && at >= 0 && at < c.input)
          value = xs[At((row * c.input + at) * c.channels + j)] ^ (c.is_signed ? 0x80 : 0);
        sum += value * (ws[At((j * rows + row) * c.columns + t)] - (c.w_zero ? w_zeros[At(j)] : 0));
      }
    }
    INFO("position " << i / c.channels << ", channel " << j);
    REQUIRE(out[At(i)] == sum);
  }
  REQUIRE(out.back() == -77);
}

// x by weights [channels, 1, kernel...], as sums.
template <typename X, typename W>
void CheckDepthwise(const LastChannels& c, bool w_zeros) {
  INFO("x of " << c.x[1] << " by " << c.x[2] << " by " << c.x[3] << ", kernel " << c.kernel[0] << " by "
               << c.kernel[1]);
  HostTensor x = RandomBytes<X>(c.x, 1);
  HostTensor w = RandomBytes<W>({c.channels, 1, c.kernel[0], c.kernel[1]}, 2);
  HostTensor x_zero = RandomBytes<X>({}, 3);
  HostTensor w_zero = RandomBytes<W>({c.channels}, 4);
  if (!w_zeros) std::fill(w_zero.elements<W>().begin(), w_zero.elements<W>().end(), W{0});
  AttributeList attributes = {
      {"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}, {"group", c.channels}};
  const Shape last = OutShape(c);
  HostTensor x_first = ChannelsFirst<X>(x);
  HostTensor expected = HostTensor::Empty<std::int32_t>({last[0], last[3], last[1], last[2]});
  REQUIRE(Run("rewire.conv_integer", {&x_first, &w, &x_zero, &w_zero, &expected}, attributes) == "");

  HostTensor matrix = HostTensor::Empty<W>({c.channels, c.kernel[0], c.kernel[1]});
  std::copy(w.elements<W>().begin(), w.elements<W>().end(), matrix.elements<W>().begin());
  Packed packed =
      Pack(matrix, c.channels, c.kernel[0] * c.kernel[1], "OI", c.kernel[0] == 1 ? 1 : c.kernel[1]);
  HostTensor none = HostTensor::Empty<float>({0});
  HostTensor lowered = Lowered<W>(w_zero);
  HostTensor out = HostTensor::Empty<std::int32_t>(last);
  attributes.back() = {"channels", c.channels};
  attributes.emplace_back("kernel_shape", c.kernel);
  const bool needs_zero = w_zeros || !std::is_signed_v<W>;
  REQUIRE(Run("rewire.packed.depthwise_integer",
              {&x, &packed.w, &packed.sums, &x_zero, needs_zero ? &lowered : &none, &out}, attributes) == "");
  REQUIRE(ChannelsFirst<std::int32_t>(out).template values<std::int32_t>() ==
          expected.values<std::int32_t>());
}

}  // namespace

TEST_CASE("the depthwise integer kernels of every instruction set are exact") {
  ForEachTarget([] {
    for (const bool any_instruction : {false, true}) {
      const IntegerDepthwiseKernel kernel = ChooseIntegerDepthwiseKernel(any_instruction);
      for (const std::int64_t channels : {1, 5, 16, 20, 24, 33, 48, 64, 65, 96, 100, 130}) {
        for (const bool flag : {false, true}) {
          CheckLine(kernel, {channels, 9, 3, 1, 1, 11, flag, flag});
          CheckLine(kernel, {channels, 7, 5, 2, 1, 3, flag, false});
          CheckLine(kernel, {channels, 40, 3, 2, 2, 19, false, flag});
          CheckLine(kernel, {channels, 11, 1, 3, 3, 4, false, flag});
        }
      }
      // More positions than there is room for at once, and a window for which there is none.
      CheckLine(kernel, {64, 700, 3, 1, 1, 690, false, false});
      CheckLine(kernel, {16, 1400, 3, 1, 1, 1390, false, true});
      CheckLine(kernel, {64, 700, 3, 1, 300, 90, true, false});
    }
  });
}

TEST_CASE("depthwise integer convolutions by packed weights are those of conv_integer") {
  const LastChannels cases[] = {
      {{1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{2, 9, 21, 24}, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{2, 9, 21, 70}, 70, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}},
      {{1, 12, 13, 40}, 40, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {{1, 12, 13, 8}, 8, {7, 7}, {2, 1}, {1, 1}, {3, 3, 3, 3}},
      {{1, 12, 13, 96}, 96, {3, 2}, {1, 3}, {2, 3}, {0, 1, 4, 0}},
      {{1, 3, 4, 6}, 6, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {{1, 30, 1, 64}, 64, {9, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}},
      {{1, 1, 60, 20}, 20, {1, 9}, {1, 1}, {1, 2}, {0, 5, 0, 5}},
      {{1, 1, 60, 20}, 20, {1, 3}, {1, 2}, {1, 1}, {0, 1, 0, 1}},
      {{1, 2, 300, 64}, 64, {2, 128}, {1, 1}, {1, 1}, {0, 0, 0, 60}},
      {{1, 40, 3, 3}, 3, {40, 2}, {1, 1}, {1, 1}, {30, 1, 30, 1}},
  };
  for (const LastChannels& c : cases) {
    for (const bool w_zeros : {false, true}) {
      CheckDepthwise<std::uint8_t, std::int8_t>(c, w_zeros);
      CheckDepthwise<std::int8_t, std::uint8_t>(c, w_zeros);
    }
  }
}

// A convolution's sums end as those of a product whose rows are its positions.
TEMPLATE_TEST_CASE("depthwise integer sums end as those of a product do", "", float, std::uint8_t,
                   std::int8_t) {
  for (const std::int64_t channels : {7, 24, 80}) {
    HostTensor x = RandomBytes<std::uint8_t>({1, 6, 9, channels}, 1);
    HostTensor w = RandomBytes<std::int8_t>({channels, 3, 3}, 2);
    Packed packed = Pack(w, channels, 9, "OI", 3);
    HostTensor none = HostTensor::Empty<float>({0}), x_zero = HostTensor::Of<std::uint8_t>({}, {131});
    HostTensor sums = HostTensor::Empty<std::int32_t>({1, 4, 7, channels});
    const AttributeList image = {{"channels", channels}, {"kernel_shape", std::vector<std::int64_t>{3, 3}}};
    REQUIRE(Run("rewire.packed.depthwise_integer", {&x, &packed.w, &packed.sums, &x_zero, &sums}, image) ==
            "");
    std::vector<float> scales, terms;
    for (std::int64_t j = 0; j < channels; ++j) {
      scales.push_back(0.5F / static_cast<float>(100 + j));  // many results lie between two integers
      terms.push_back(static_cast<float>(j) - 3.25F);
    }
    HostTensor scale = HostTensor::Of<float>({channels}, scales);
    HostTensor bias = HostTensor::Of<float>({channels}, terms);
    for (HostTensor* term : {&none, &bias}) {
      HostTensor out = HostTensor::Empty<TestType>({1, 4, 7, channels});
      AttributeList attributes = image;
      if constexpr (std::is_same_v<TestType, float>) {
        attributes.emplace_back("activation", "relu");
      } else {
        attributes.emplace_back("zero", std::int64_t{7});
        attributes.emplace_back("most", std::int64_t{100});
      }
      REQUIRE(Run("rewire.packed.depthwise_integer",
                  {&x, &packed.w, &packed.sums, &x_zero, &none, &scale, term, &out}, attributes) == "");
      const auto whole = sums.values<std::int32_t>();
      const auto results = out.values<TestType>();
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::size_t j = i % At(channels);
        const float shift = term == &bias ? terms[j] : 0;
        const float value = std::fma(static_cast<float>(whole[i]), scales[j], shift);
        float expected = std::max(value, 0.0F);
        if constexpr (!std::is_same_v<TestType, float>) {
          const float least = std::numeric_limits<TestType>::min();
          expected = std::clamp(std::nearbyint(value) + 7, least, 100.0F);
        }
        INFO(channels << " channels, element " << i);
        REQUIRE(static_cast<float>(results[i]) == expected);
      }
    }
  }
}

TEST_CASE("depthwise integer convolutions refuse what does not fit") {
  HostTensor x = HostTensor::Empty<std::uint8_t>({1, 4, 4, 3}), w = HostTensor::Empty<std::int8_t>({16, 12});
  HostTensor sums = HostTensor::Empty<std::int32_t>({4}), out = HostTensor::Empty<std::int32_t>({1, 2, 2, 4});
  const char* const name = "rewire.packed.depthwise_integer";
  CHECK(Run(name, {&x, &w, &sums, &out},
            {{"channels", std::int64_t{4}}, {"kernel_shape", std::vector<std::int64_t>{3, 3}}}) ==
        "ValueError: rewire.packed.depthwise_integer: x has shape [1, 4, 4, 3], expected 4 channels");
  HostTensor image = HostTensor::Empty<std::uint8_t>({1, 4, 4, 4});
  HostTensor narrow = HostTensor::Empty<std::int8_t>({16, 9});
  CHECK(Run(name, {&image, &narrow, &sums, &out},
            {{"channels", std::int64_t{4}}, {"kernel_shape", std::vector<std::int64_t>{3, 3}}}) ==
        "ValueError: rewire.packed.depthwise_integer: w has shape [16, 9], expected [16, 12]");
  CHECK(Run(name, {&image, &w, &sums, &out},
            {{"channels", std::int64_t{4}}, {"kernel_shape", std::vector<std::int64_t>{1, 257}}}) ==
        "ValueError: rewire.packed.depthwise_integer: attribute 'kernel_shape' is [1, 257], expected at most "
        "256 positions");
}

}  // namespace rewire::test
