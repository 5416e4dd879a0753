// SPDX-License-Identifier: Apache-2.0
// Max pools with the channels last: the kernel of every instruction set, and beside pools with them first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rewire/kernels/cpu/convolution/pool/largest_windows.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::ChooseLargestWindowsKernel;
using kernel::cpu::WindowsInRow;

// Windows of `rows` rows of `taps` taps, two apart, at three positions. Two elements are NaN, or infinities
// of both signs.
void CheckLargestWindows(std::int64_t channels, std::int64_t rows, std::int64_t taps) {
  CAPTURE(channels, rows, taps);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr std::int64_t kCount = 3, kStride = 2, kLength = 20;
  const auto row = static_cast<std::size_t>(kLength * channels);
  std::vector<float> x(static_cast<std::size_t>(rows) * row),
      out(static_cast<std::size_t>(kCount * channels) + 1, -77.0F);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 13) - 20;
  x[static_cast<std::size_t>(2 * channels)] = std::numeric_limits<float>::quiet_NaN();
  x[static_cast<std::size_t>(5 * channels - 1)] = kInf;
  x.back() = -kInf;
  x[row - 1] = -kInf;
  std::vector<const float*> from;
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) from.push_back(x.data() + r * row);
  WindowsInRow<float> windows{channels,     kCount, kStride * channels, taps,
                              2 * channels, rows,   from.data(),        out.data()};
  ChooseLargestWindowsKernel<float>()(windows);
  for (std::int64_t i = 0; i < kCount * channels; ++i) {
    float most = -kInf;
    for (const float* line : from) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const float value = line[(i / channels * kStride + 2 * t) * channels + i % channels];
        most = value > most || value != value ? value : most;
      }
    }
    const float given = out[static_cast<std::size_t>(i)];
    REQUIRE((given == most || (std::isnan(given) && std::isnan(most))));
  }
  REQUIRE(out.back() == -77);
  windows.row_count = 0;
  ChooseLargestWindowsKernel<float>()(windows);
  REQUIRE(out[0] == -kInf);
}

TEST_CASE("the largest under windows, of every instruction set") {
  ForEachTarget([] {
    for (std::int64_t channels = 1; channels < 70; ++channels) {
      for (const auto& [rows, taps] : {std::pair(2, 2), std::pair(3, 3), std::pair(1, 4), std::pair(5, 1)})
        CheckLargestWindows(channels, rows, taps);
    }
  });
}

struct Pool {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  std::int64_t ceil_mode;
  Shape out;  // [rows, columns] of the result
};

TEST_CASE("max pools with the channels last are those with the channels first") {
  const Pool pools[] = {
      {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 0, {4, 5}},   {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1, {5, 6}},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 0, {5, 6}},   {{5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 0, {9, 11}},
      {{1, 4}, {1, 4}, {1, 1}, {0, 0, 0, 0}, 0, {9, 2}},   {{3, 2}, {1, 2}, {2, 3}, {0, 1, 1, 2}, 0, {6, 6}},
      {{2, 13}, {1, 1}, {1, 1}, {0, 6, 0, 6}, 0, {8, 11}},
  };
  for (const Pool& pool : pools) {
    for (const std::int64_t channels : {1, 5, 8, 16, 37}) {
      CAPTURE(pool.kernel, pool.ceil_mode, channels);
      const std::int64_t n = 2, rows = pool.out[0], columns = pool.out[1];
      const auto turn = [](HostTensor& from, HostTensor& to) {
        return Run("rewire.transpose", {&from, &to}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}});
      };
      HostTensor first = HostTensor::Random({n, channels, 9, 11}, 1);
      first.values<float>()[5] = std::numeric_limits<float>::quiet_NaN();
      HostTensor last = HostTensor::Empty<float>({n, 9, 11, channels});
      REQUIRE(turn(first, last) == "");
      HostTensor expected = HostTensor::Empty<float>({n, channels, rows, columns});
      HostTensor turned = HostTensor::Empty<float>({n, rows, columns, channels});
      HostTensor given = HostTensor::Empty<float>({n, rows, columns, channels});
      AttributeList attributes = {{"kernel_shape", pool.kernel},
                                  {"strides", pool.strides},
                                  {"dilations", pool.dilations},
                                  {"pads", pool.pads},
                                  {"ceil_mode", pool.ceil_mode}};
      REQUIRE(Run("rewire.max_pool", {&first, &expected}, attributes) == "");
      REQUIRE(turn(expected, turned) == "");
      attributes.emplace_back("layout", "NHWC");
      REQUIRE(Run("rewire.max_pool", {&last, &given}, attributes) == "");
      const auto values = given.values<float>(), right = turned.values<float>();
      for (std::size_t i = 0; i < values.size(); ++i)
        REQUIRE((values[i] == right[i] || (std::isnan(values[i]) && std::isnan(right[i]))));
    }
  }
}

TEST_CASE("max pools of bf16 are those of f32, in both layouts") {
  const auto halves = [](const HostTensor& floats) {
    HostTensor of_bf16 = HostTensor::Empty<BFloat16>(floats.shape());
    const auto values = floats.values<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      of_bf16.elements<BFloat16>()[static_cast<std::int64_t>(i)] = BFloat16(values[i]);
    return of_bf16;
  };
  for (const char* layout : {"NCHW", "NHWC"}) {
    for (const std::int64_t kernel : {2, 3, 5, 70}) {
      for (const std::int64_t channels : {1, 7, 32, 45}) {
        CAPTURE(layout, kernel, channels);
        const bool last = layout[1] == 'H';
        const std::int64_t in = kernel == 70 ? 70 : 9, out = in - kernel + 1;
        HostTensor x = HostTensor::Random(last ? Shape{1, in, in, channels} : Shape{1, channels, in, in}, 1);
        const auto values = x.values<float>();
        for (std::size_t i = 0; i < values.size(); ++i)
          x.elements<float>()[static_cast<std::int64_t>(i)] = static_cast<float>(BFloat16(values[i]));
        x.elements<float>()[2] = -std::numeric_limits<float>::quiet_NaN();
        x.elements<float>()[x.size() - 3] = std::numeric_limits<float>::infinity();
        const Shape shape = last ? Shape{1, out, out, channels} : Shape{1, channels, out, out};
        HostTensor expected = HostTensor::Empty<float>(shape), half_x = halves(x);
        const AttributeList attributes = {{"kernel_shape", std::vector<std::int64_t>{kernel, kernel}},
                                          {"layout", layout}};
        REQUIRE(Run("rewire.max_pool", {&x, &expected}, attributes) == "");
        ForEachTarget([&] {
          HostTensor given = HostTensor::Empty<BFloat16>(shape);
          REQUIRE(Run("rewire.max_pool", {&half_x, &given}, attributes) == "");
          for (std::int64_t i = 0; i < given.size(); ++i) {
            const auto value = static_cast<float>(given.elements<BFloat16>()[i]);
            const float wanted = expected.elements<float>()[i];
            if (!(value == wanted || (std::isnan(value) && std::isnan(wanted))))
              FAIL("element " << i << " is " << value << ", expected " << wanted);
          }
        });
      }
    }
  }
}

}  // namespace
TEMPLATE_TEST_CASE("the largest bytes under windows, of every instruction set", "", std::uint8_t,
                   std::int8_t) {
  using Limits = std::numeric_limits<TestType>;
  ForEachTarget([] {
    for (std::int64_t channels = 1; channels < 200; ++channels) {
      const auto size = static_cast<std::size_t>(channels);
      std::vector<TestType> x(3 * size), out(size + 1, TestType{77});
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<TestType>(i * 89 + i / 7);
      const TestType* rows[] = {x.data(), x.data() + size, x.data() + 2 * size};
      WindowsInRow<TestType> windows{channels, 1, channels, 1, channels, 3, rows, out.data()};
      ChooseLargestWindowsKernel<TestType>()(windows);
      for (std::size_t i = 0; i < size; ++i)
        REQUIRE(out[i] == std::max({x[i], x[size + i], x[2 * size + i]}));
      REQUIRE(out.back() == 77);
      windows.row_count = 0;
      ChooseLargestWindowsKernel<TestType>()(windows);
      REQUIRE(out[0] == Limits::min());
    }
  });
}

}  // namespace rewire::test
