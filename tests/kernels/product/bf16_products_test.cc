// SPDX-License-Identifier: Apache-2.0
// Products by packed weights in bf16. They are those of the f32 kernels for numbers that are rounded to bf16,
// but for the order of the sums.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "rewire/kernels/cpu/product/pack_pairs.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/product/bf16_tensors.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::Activation;
using kernel::cpu::ChoosePairPanelKernel;
using kernel::cpu::ChooseRoundFloats;
using kernel::cpu::kPanelWidth;
using kernel::cpu::PackedColumns;
using kernel::cpu::PairsOf;
using kernel::cpu::PanelKernel;
using kernel::cpu::PanelTile;
using kernel::cpu::WidthOfPanel;

std::size_t IndexOf(std::int64_t i) { return static_cast<std::size_t>(i); }

// Small whole numbers, so that sums are exact in any order.
std::vector<BFloat16> WholeBFloats(std::int64_t count, int modulus) {
  const int half = modulus / 2;
  std::vector<BFloat16> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.emplace_back(static_cast<float>(static_cast<int>(i * 7 % modulus) - half));
  return numbers;
}

// A tile of `rows` rows in two segments of `depth` pairs.
void CheckPairTile(const PanelKernel& kernel, int rows, std::int64_t depth, std::int64_t columns,
                   bool finish) {
  const std::vector<BFloat16> x = WholeBFloats(4 * rows * depth, 13);
  const std::vector<BFloat16> panels = WholeBFloats(4 * depth * PackedColumns(columns), 11);
  std::vector<float> bias(IndexOf(columns), 3.0F), addend(IndexOf(rows * columns), -5.0F);
  std::vector<float> out(IndexOf(rows * columns), -77.0F);
  std::vector<const float*> pointers;
  for (std::int64_t i = 0; i < 2 * rows; ++i)
    pointers.push_back(reinterpret_cast<const float*>(x.data() + 2 * i * depth));
  PanelTile tile{pointers.data(), rows,    2,       depth,      reinterpret_cast<const float*>(panels.data()),
                 columns,         nullptr, nullptr, out.data(), columns,
                 Activation{}};
  if (finish) {
    tile.bias = bias.data();
    tile.addend = addend.data();
    tile.activation.kind = Activation::kRelu;
  }
  kernel.run(tile);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float sum = finish ? -2.0F : 0.0F;
      const std::int64_t width = WidthOfPanel(j / kPanelWidth, columns);
      const std::int64_t first = 2 * depth * (j / kPanelWidth * kPanelWidth) + j % kPanelWidth;
      for (std::int64_t k = 0; k < 4 * depth; ++k) {
        const std::int64_t segment = k / (2 * depth);
        const BFloat16 left = x[IndexOf(2 * (segment * rows + i) * depth + k % (2 * depth))];
        const BFloat16 right = panels[IndexOf(2 * (first + k / 2 * width) + k % 2)];
        sum += static_cast<float>(left) * static_cast<float>(right);
      }
      if (finish && sum < 0) sum = 0;
      INFO(rows << " rows, " << depth << " pairs, column " << j << " of " << columns << ", row " << i);
      REQUIRE(out[IndexOf(i * columns + j)] == sum);
    }
  }
}

// The order of additions differs, so sums of many products differ more.
double MostApart(std::int64_t depth) {
  return 1e-5 * std::sqrt(std::max(1.0, static_cast<double>(depth) / 1000));
}

void CheckNear(const HostTensor& out, const HostTensor& expected, double most = 1e-5) {
  const auto values = out.values<float>(), wanted = expected.values<float>();
  REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::fabs(values[i] - wanted[i]) <= most * (1 + std::fabs(wanted[i]))))
      FAIL("element " << i << " is " << values[i] << ", expected " << wanted[i]);
  }
}

}  // namespace

TEST_CASE("the pair kernels of every instruction set multiply whole numbers exactly") {
  ForEachTarget([] {
    for (const bool any_instruction : {false, true}) {
      const PanelKernel kernel = ChoosePairPanelKernel(any_instruction);
      for (int rows = 1; rows <= kernel.rows; ++rows) {
        for (std::int64_t depth : {1, 4, 7}) {
          for (std::int64_t columns : {1, 5, 16, 17, 32, 33, 96, 117}) {
            CheckPairTile(kernel, rows, depth, columns, false);
            CheckPairTile(kernel, rows, depth, columns, true);
          }
        }
      }
    }
  });
}

TEST_CASE("floats are rounded to bf16 alike on every instruction set, ties to even") {
  std::vector<float> floats = {0.0F,
                               -0.0F,
                               1.0F,
                               -3.5F,
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::min()};
  for (const std::uint32_t low : {0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
    for (std::uint32_t high = 0x3F80; high < 0x3F90; ++high)
      floats.push_back(std::bit_cast<float>(high << 16 | low));
  }
  while (floats.size() < 100) floats.push_back(static_cast<float>(floats.size()) / 7);
  ForEachTarget([&] {
    for (const bool any_instruction : {false, true}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{15}, std::size_t{33}, floats.size()}) {
        std::vector<std::uint16_t> rounded(count + count % 2 + 1, 77);
        ChooseRoundFloats(any_instruction)(floats.data(), 1, static_cast<std::int64_t>(count),
                                           rounded.data());
        for (std::size_t i = 0; i < count; ++i) {
          INFO("element " << i << " of " << count);
          REQUIRE(rounded[i] == BFloat16(floats[i]).bits);
        }
        if (count % 2 == 1) REQUIRE(rounded[count] == 0);
        REQUIRE(rounded.back() == 77);
      }
      const std::vector<float> nans(40, std::numeric_limits<float>::signaling_NaN());
      std::vector<std::uint16_t> rounded(nans.size());
      ChooseRoundFloats(any_instruction)(nans.data(), 1, static_cast<std::int64_t>(nans.size()),
                                         rounded.data());
      for (const std::uint16_t bits : rounded) REQUIRE(bits == 0x7FE0);
    }
  });
}

TEST_CASE("what fills up a pair of an odd depth is 0") {
  for (const std::int64_t depth : {1, 3, 5, 15, 17, 33}) {
    constexpr std::int64_t kRows = 20;
    const std::int64_t row = 2 * PairsOf(depth);
    const std::vector<float> x(IndexOf(kRows * depth), 1.0F);
    ForEachTarget([&] {
      for (const bool any_instruction : {false, true}) {
        std::vector<std::uint16_t> pairs(IndexOf(kRows * row + 1), 0x7FC0);
        ChooseRoundFloats(any_instruction)(x.data(), kRows, depth, pairs.data());
        INFO("depth " << depth);
        for (std::int64_t i = 0; i < kRows * row; ++i)
          REQUIRE(pairs[IndexOf(i)] == (i % row == depth ? 0 : 0x3F80));
        REQUIRE(pairs.back() == 0x7FC0);
      }
    });
  }
}

TEST_CASE("rows by bf16 weights are those of f32 on rounded numbers") {
  // The largest is rounded in several parts.
  const Shape sizes[] = {{1, 1, 1}, {3, 5, 40}, {4, 9, 100}, {20, 17, 133}, {70, 64, 16}, {3000, 128, 24}};
  for (const Shape& size : sizes) {
    const std::int64_t m = size[0], k = size[1], n = size[2];
    INFO(m << " rows of " << k << " by " << n);
    HostTensor x = HostTensor::Random({m, k}, 1), rounded_x = Rounded(x);
    HostTensor bias = HostTensor::Random({n}, 3);
    HostTensor addend = HostTensor::Random({m, n}, 4);
    for (const char* order : {"IO", "OI"}) {
      HostTensor w = HostTensor::Random(order[0] == 'O' ? Shape{n, k} : Shape{k, n}, 2);
      HostTensor rounded_w = Rounded(w);
      HostTensor pairs = PackedAs<BFloat16>(w, n, 2 * PairsOf(k), order);
      HostTensor floats = PackedAs<float>(rounded_w, n, k, order);
      const AttributeList attributes = {{"columns", n}, {"activation", "relu"}};
      HostTensor out = HostTensor::Empty<float>({m, n}), expected = HostTensor::Empty<float>({m, n});
      REQUIRE(Run("rewire.packed.matmul", {&x, &pairs, &bias, &addend, &out}, attributes) == "");
      REQUIRE(Run("rewire.packed.matmul", {&rounded_x, &floats, &bias, &addend, &expected}, attributes) ==
              "");
      CheckNear(out, expected);
      // Numbers that are rounded before or afterwards give the same.
      if (k % 2 != 0) continue;
      HostTensor half_x = Halves(x), plain = HostTensor::Empty<float>({m, n});
      HostTensor half_out = HostTensor::Empty<BFloat16>({m, n});
      REQUIRE(Run("rewire.packed.matmul", {&x, &pairs, &bias, &plain}, attributes) == "");
      REQUIRE(Run("rewire.packed.matmul", {&half_x, &pairs, &bias, &half_out}, attributes) == "");
      CheckSameBits(half_out, Halves(plain));
      REQUIRE(Run("rewire.packed.matmul", {&rounded_x, &floats, &bias, &plain}, attributes) == "");
      REQUIRE(Run("rewire.packed.matmul", {&rounded_x, &floats, &bias, &half_out}, attributes) == "");
      CheckSameBits(half_out, Halves(plain));
    }
  }
}

TEST_CASE("convolutions by bf16 weights are those of f32 on rounded numbers") {
  struct Case {
    Shape x;
    std::int64_t channels;
    std::vector<std::int64_t> kernel, strides, dilations, pads;
  };
  const Case cases[] = {
      {{1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{2, 5, 7, 3}, 18, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{1, 50, 60, 64}, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{1, 9, 9, 6}, 40, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {{2, 9, 21, 5}, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{1, 9, 21, 4}, 20, {3, 5}, {2, 2}, {1, 1}, {1, 2, 1, 2}},
      {{1, 12, 13, 2}, 8, {3, 2}, {1, 3}, {2, 3}, {0, 1, 4, 0}},
      {{1, 30, 1, 6}, 40, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}},
      // These have enough work for tiles, where there are any.
      {{2, 17, 40, 32}, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{2, 17, 41, 24}, 40, {3, 3}, {2, 2}, {1, 1}, {1, 0, 2, 1}},
      {{1, 30, 40, 3}, 32, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
      {{1, 30, 40, 1}, 70, {5, 5}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{1, 30, 40, 33}, 16, {3, 2}, {3, 1}, {2, 2}, {1, 1, 1, 1}},
      {{1, 1, 400, 16}, 48, {1, 9}, {1, 2}, {1, 1}, {0, 4, 0, 4}},
      {{2, 1, 9000, 32}, 16, {1, 9}, {1, 2}, {1, 1}, {0, 4, 0, 4}},  // lines in parts
      {{3, 20, 1, 64}, 64, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}},
      {{1, 700, 1, 20}, 64, {1, 1}, {3, 1}, {1, 1}, {0, 0, 0, 0}},
      // These are rounded in several parts.
      {{2, 90, 100, 70}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{1, 95, 100, 71}, 8, {2, 2}, {3, 2}, {2, 1}, {0, 0, 3, 0}},
      {{1, 40, 4, 3001}, 4, {3, 1}, {2, 1}, {5, 1}, {9, 0, 9, 0}},
  };
  for (const Case& c : cases) {
    INFO("x of " << c.x[1] << " by " << c.x[2] << " by " << c.x[3] << ", kernel " << c.kernel[0] << " by "
                 << c.kernel[1]);
    const std::int64_t taps = c.kernel[0] * c.kernel[1];
    HostTensor x = HostTensor::Random(c.x, 1), rounded_x = Rounded(x);
    HostTensor w = HostTensor::Random({c.channels, c.x[3], c.kernel[0], c.kernel[1]}, 2);
    HostTensor rounded_w = Rounded(w), bias = HostTensor::Random({c.channels}, 3);
    HostTensor pairs = PackedAs<BFloat16>(w, c.channels, 2 * PairsOf(c.x[3]) * taps, "OI");
    HostTensor floats = PackedAs<float>(rounded_w, c.channels, c.x[3] * taps, "OI");
    Shape shape = {c.x[0]};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t reach = (c.kernel[i] - 1) * c.dilations[i] + 1;
      shape.push_back((c.x[i + 1] + c.pads[i] + c.pads[i + 2] - reach) / c.strides[i] + 1);
    }
    shape.push_back(c.channels);
    const AttributeList attributes = {{"channels", c.channels},
                                      {"kernel_shape", c.kernel},
                                      {"strides", c.strides},
                                      {"dilations", c.dilations},
                                      {"pads", c.pads}};
    HostTensor out = HostTensor::Empty<float>(shape), expected = HostTensor::Empty<float>(shape);
    REQUIRE(Run("rewire.packed.conv", {&x, &pairs, &bias, &out}, attributes) == "");
    REQUIRE(Run("rewire.packed.conv", {&rounded_x, &floats, &bias, &expected}, attributes) == "");
    CheckNear(out, expected, MostApart(c.x[3] * taps));
    HostTensor half_out = HostTensor::Empty<BFloat16>(shape);
    REQUIRE(Run("rewire.packed.conv", {&x, &pairs, &bias, &half_out}, attributes) == "");
    CheckSameBits(half_out, Halves(out));
    if (c.x[3] % 2 != 0) continue;
    HostTensor half_x = Halves(x);
    REQUIRE(Run("rewire.packed.conv", {&half_x, &pairs, &bias, &half_out}, attributes) == "");
    CheckSameBits(half_out, Halves(out));
    // Ones of bf16 are added to all.
    HostTensor ones = HostTensor::Empty<BFloat16>(shape);
    for (std::int64_t i = 0; i < ones.size(); ++i) ones.elements<BFloat16>()[i] = BFloat16(1.0F);
    HostTensor more = HostTensor::Empty<float>(shape);
    REQUIRE(Run("rewire.packed.conv", {&half_x, &pairs, &bias, &ones, &more}, attributes) == "");
    for (std::int64_t i = 0; i < out.size(); ++i) out.elements<float>()[i] += 1.0F;
    CHECK(more.values<float>() == out.values<float>());
  }
}

TEST_CASE("depthwise convolutions round what they write") {
  for (const std::int64_t channels : {1, 3, 16, 70}) {
    HostTensor x = HostTensor::Random({2, 9, 11, channels}, 1), w = HostTensor::Random({9, channels}, 2);
    HostTensor bias = HostTensor::Random({channels}, 3);
    HostTensor out = HostTensor::Empty<float>({2, 9, 11, channels});
    HostTensor half_out = HostTensor::Empty<BFloat16>({2, 9, 11, channels});
    const AttributeList attributes = {{"channels", channels},
                                      {"kernel_shape", std::vector<std::int64_t>{3, 3}},
                                      {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
                                      {"activation", "relu"}};
    ForEachTarget([&] {
      REQUIRE(Run("rewire.packed.depthwise", {&x, &w, &bias, &out}, attributes) == "");
      REQUIRE(Run("rewire.packed.depthwise", {&x, &w, &bias, &half_out}, attributes) == "");
      CheckSameBits(half_out, Halves(out));
    });
  }
}

TEST_CASE("Winograd's form takes weights of bf16") {
  HostTensor w = Rounded(HostTensor::Random({20, 9, 3, 3}, 1));
  HostTensor halves = HostTensor::Empty<BFloat16>({20, 9, 3, 3});
  for (std::int64_t i = 0; i < w.size(); ++i)
    halves.elements<BFloat16>()[i] = BFloat16(w.elements<float>()[i]);
  HostTensor out = HostTensor::Empty<float>({36, 32, 9}), expected = HostTensor::Empty<float>({36, 32, 9});
  REQUIRE(Run("rewire.packed.winograd_weights", {&halves, &out}) == "");
  REQUIRE(Run("rewire.packed.winograd_weights", {&w, &expected}) == "");
  CHECK(out.values<float>() == expected.values<float>());
}

TEST_CASE("bf16 weights that do not fit are refused") {
  HostTensor x = HostTensor::Random({2, 5}, 1), w = HostTensor::Random({5, 7}, 2);
  HostTensor packed = PackedAs<BFloat16>(w, 7, 6, "IO"), out = HostTensor::Empty<float>({2, 7});
  HostTensor narrow = HostTensor::Empty<BFloat16>({16, 5}), doubles = HostTensor::Empty<double>({16, 5});
  const AttributeList columns = {{"columns", std::int64_t{7}}};
  HostTensor half_x = Halves(x), floats = PackedAs<float>(w, 7, 5, "IO"), half_out = Halves(out);
  CHECK(Run("rewire.packed.matmul", {&half_x, &packed, &out}, columns) ==
        "ValueError: rewire.packed.matmul: x has shape [2, 5], expected pairs of bf16 along the last axis");
  CHECK(Run("rewire.packed.matmul", {&half_x, &floats, &out}, columns) ==
        "TypeError: rewire.packed.matmul: x has dtype bf16, expected f32");
  HostTensor bias = HostTensor::Random({7}, 3);
  HostTensor wrong = HostTensor::Empty<kernel::cpu::Float16>({2, 7});
  CHECK(Run("rewire.packed.matmul", {&x, &packed, &bias, &wrong, &half_out}, columns) ==
        "TypeError: rewire.packed.matmul: addend has dtype f16, expected one of f32, bf16");
  HostTensor half_bias = Halves(bias);
  CHECK(Run("rewire.packed.matmul", {&x, &packed, &half_bias, &out}, columns) ==
        "TypeError: rewire.packed.matmul: bias has dtype bf16, expected f32");
  CHECK(Run("rewire.packed.matmul", {&x, &packed, &out}, columns) == "");
  CHECK(Run("rewire.packed.matmul", {&x, &narrow, &out}, columns) ==
        "ValueError: rewire.packed.matmul: w has shape [16, 5], expected [16, 6]");
  CHECK(Run("rewire.packed.matmul", {&x, &doubles, &out}, columns) ==
        "TypeError: rewire.packed.matmul: w has dtype f64, expected one of f32, bf16, f16");
  CHECK(Run("rewire.packed.pack", {&w, &narrow}) ==
        "ValueError: rewire.packed.pack: out has shape [16, 5], expected [16, 6]");
  CHECK(Run("rewire.packed.pack", {&w, &doubles}) ==
        "TypeError: rewire.packed.pack: out has dtype f64, expected one of f32, bf16, f16");
  HostTensor image = HostTensor::Random({1, 4, 4, 4}, 3), result = HostTensor::Empty<float>({1, 4, 4, 4});
  HostTensor taps = HostTensor::Empty<BFloat16>({1, 4});
  const AttributeList of_image = {{"channels", std::int64_t{4}},
                                  {"kernel_shape", std::vector<std::int64_t>{1, 1}}};
  CHECK(Run("rewire.packed.depthwise", {&image, &taps, &result}, of_image) ==
        "TypeError: rewire.packed.depthwise: w has dtype bf16, expected f32");
  CHECK(Run("rewire.packed.conv", {&image, &taps, &result}, of_image) ==
        "ValueError: rewire.packed.conv: w has shape [1, 4], expected [16, 4]");
}

}  // namespace rewire::test
