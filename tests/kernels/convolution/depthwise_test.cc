// SPDX-License-Identifier: Apache-2.0
// The kernel of depthwise convolutions, of every instruction set, on whole numbers: every order gives the
// same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "rewire/kernels/cpu/convolution/depthwise.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::Activation;
using kernel::cpu::ChooseDepthwiseKernel;
using kernel::cpu::DepthwiseRow;

std::vector<float> WholeNumbers(std::int64_t count, int modulus) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(i * 7 % modulus) - static_cast<float>(modulus / 2));
  return numbers;
}

struct WindowCase {
  std::int64_t channels, count, taps, stride, dilation;
  std::int64_t outside;  // pixels that the windows reach out on either side
};

void CheckDepthwiseWindow(const WindowCase& c, Activation activation) {
  CAPTURE(c.channels, c.count, c.taps, c.stride, c.dilation, c.outside, activation.kind);
  const std::int64_t pixels = (c.count - 1) * c.stride + (c.taps - 1) * c.dilation + 1 - 2 * c.outside;
  if (pixels < 1) return;
  const std::vector<float> x[] = {WholeNumbers(pixels * c.channels, 13),
                                  WholeNumbers(pixels * c.channels, 17)};
  const std::vector<float> w[] = {WholeNumbers(c.taps * c.channels, 11),
                                  WholeNumbers(c.taps * c.channels, 7)};
  const std::vector<float> bias = WholeNumbers(c.channels, 5);
  std::vector<float> out(static_cast<std::size_t>(c.count * c.channels + 1), -77.0F);
  const float* rows[] = {x[0].data(), x[1].data()};
  const float* weights[] = {w[0].data(), w[1].data()};
  DepthwiseRow row{c.channels, c.count, c.stride,    c.dilation, c.taps,    2,
                   rows,       weights, bias.data(), out.data(), activation};
  row.start = -c.outside;
  row.pixels = pixels;
  ChooseDepthwiseKernel()(row);
  REQUIRE(out.back() == -77);
  for (std::int64_t i = 0; i < c.count * c.channels; ++i) {
    const std::int64_t channel = i % c.channels;
    float sum = bias[static_cast<std::size_t>(channel)];
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t t = 0; t < c.taps; ++t) {
        const std::int64_t pixel = i / c.channels * c.stride + t * c.dilation - c.outside;
        if (pixel >= 0 && pixel < pixels)
          sum += rows[r][pixel * c.channels + channel] * weights[r][t * c.channels + channel];
      }
    }
    if (activation.kind == Activation::kRelu) sum = std::max(sum, 0.0F);
    if (activation.kind == Activation::kTanh) sum = std::tanh(sum);
    sum = sum * activation.post_scale + activation.post_shift;
    // Not one assertion for each of millions of elements.
    const float found = out[static_cast<std::size_t>(i)];
    if (!(found == sum || found == Approx(sum).margin(1e-6)))
      FAIL("element " << i << " is " << found << ", expected " << sum);
  }
}

TEST_CASE("the depthwise kernel of every instruction set has windows of all sizes") {
  ForEachTarget([] {
    for (std::int64_t taps : {1, 2, 3, 5, 7}) {
      for (std::int64_t stride : {1, 2, 3}) {
        for (std::int64_t count : {1, 3, 4, 5, 7, 8, 9, 13, 20}) {
          for (std::int64_t outside : {0, 1, 2, 5})
            CheckDepthwiseWindow({24, count, taps, stride, 1, outside}, {});
        }
      }
      for (std::int64_t channels : {1, 3, 8, 70, 300}) {
        for (std::int64_t outside : {0, 3}) {
          CheckDepthwiseWindow({channels, 13, taps, 1, 1, outside}, {Activation::kRelu, 0, 0});
          CheckDepthwiseWindow({channels, 13, taps, 2, 2, outside}, {Activation::kTanh, 0, 0});
          CheckDepthwiseWindow({channels, 13, taps, 1, 1, outside}, {Activation::kRelu, 0, 0, -2, 3, true});
          CheckDepthwiseWindow({channels, 13, taps, 2, 1, outside}, {Activation::kTanh, 0, 0, 3, -1, true});
        }
      }
    }
  });
}

TEST_CASE("several outputs of each channel are those of an image that repeats its channels") {
  ForEachTarget([] {
    for (const std::int64_t channels : {1, 5, 16, 37}) {
      for (const std::int64_t multiplier : {1, 2, 3}) {
        CAPTURE(channels, multiplier);
        const std::int64_t outputs = channels * multiplier;
        HostTensor x = HostTensor::Of<float>({2, 4, 5, channels}, WholeNumbers(40 * channels, 13));
        HostTensor w = HostTensor::Of<float>({9, outputs}, WholeNumbers(9 * outputs, 11));
        HostTensor bias = HostTensor::Of<float>({outputs}, WholeNumbers(outputs, 7));
        HostTensor out = HostTensor::Empty<float>({2, 4, 5, outputs});
        REQUIRE(Run("rewire.packed.depthwise", {&x, &w, &bias, &out},
                    {{"channels", outputs},
                     {"multiplier", multiplier},
                     {"kernel_shape", std::vector<std::int64_t>{3, 3}},
                     {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}) == "");
        for (std::int64_t i = 0; i < out.size(); ++i) {
          const std::int64_t c = i % outputs, column = i / outputs % 5, row = i / outputs / 5 % 4;
          float sum = bias.elements<float>()[c];
          for (std::int64_t tap = 0; tap < 9; ++tap) {
            const std::int64_t to_row = tap / 3 - 1, to_column = tap % 3 - 1;
            if (row + to_row < 0 || row + to_row >= 4 || column + to_column < 0 || column + to_column >= 5)
              continue;
            sum += x.elements<float>()[(i / outputs + to_row * 5 + to_column) * channels + c / multiplier] *
                   w.elements<float>()[tap * outputs + c];
          }
          CAPTURE(i);
          REQUIRE(out.elements<float>()[i] == sum);
        }
      }
    }
  });
  HostTensor x = HostTensor::Random({1, 4, 4, 3}, 1), w = HostTensor::Random({9, 4}, 1);
  HostTensor out = HostTensor::Empty<float>({1, 2, 2, 4});
  CHECK(Run("rewire.packed.depthwise", {&x, &w, &out},
            {{"channels", 4}, {"multiplier", 2}, {"kernel_shape", std::vector<std::int64_t>{3, 3}}}) ==
        "ValueError: rewire.packed.depthwise: x has shape [1, 4, 4, 3], expected 2 channels");
  HostTensor image = HostTensor::Random({1, 4, 4, 1}, 1);
  HostTensor three = HostTensor::Empty<float>({1, 2, 2, 3}), of_three = HostTensor::Random({9, 3}, 1);
  CHECK(Run("rewire.packed.depthwise", {&image, &of_three, &three},
            {{"channels", 3}, {"multiplier", 2}, {"kernel_shape", std::vector<std::int64_t>{3, 3}}}) ==
        "ValueError: rewire.packed.depthwise: channels is 3, expected a multiple of multiplier, which is 2");
}

}  // namespace
}  // namespace rewire::test
