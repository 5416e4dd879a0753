// SPDX-License-Identifier: Apache-2.0
// Products by weights of 4 and 8 bits in blocks against sums in double precision.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/kernels/cpu/product/blocked_panels.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::BlockedBytes;
using kernel::cpu::BlockedBytesRow;
using kernel::cpu::BlockedKernels;
using kernel::cpu::BlockedPanel;
using kernel::cpu::BlockedPanels;
using kernel::cpu::BlockedSums;
using kernel::cpu::ChooseBlockedKernels;
using kernel::cpu::Float16;
using kernel::cpu::kBlockedWidth;
using kernel::cpu::kMostBlockedCount;

std::size_t BlockAt(std::int64_t i) { return static_cast<std::size_t>(i); }

// Weights as MatMulNBits has them, and what they stand for.
struct BlockedCase {
  std::int64_t columns, depth, block, bits;
  bool half = false, zeros = false;
  HostTensor codes = {}, scales = {}, zero_points = {};
  std::vector<double> weights = {};  // [columns, depth]

  void Make() {
    const std::int64_t blocks = depth / block, per_byte = 8 / bits;
    std::uint32_t state = 12345;
    const auto next = [&] { return state = state * 1664525U + 1013904223U, state >> 16; };
    std::vector<std::uint8_t> bytes(BlockAt(columns * depth / per_byte));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(next());
    std::vector<float> of_blocks(BlockAt(columns * blocks)), middles(BlockAt(columns * blocks));
    for (float& scale : of_blocks) scale = static_cast<float>(1 + next() % 64) / 512;
    for (float& middle : middles)
      middle = zeros ? static_cast<float>(next() % (1U << bits)) : static_cast<float>(1 << (bits - 1));
    codes = HostTensor::Of<std::uint8_t>({columns, blocks, block / per_byte}, bytes);
    scales = HostTensor::Of<float>({columns * blocks}, of_blocks);
    zero_points = HostTensor::Of<float>({columns, blocks}, middles);
    weights.resize(BlockAt(columns * depth));
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const std::int64_t i = j * depth + k;
        const int code = bytes[BlockAt(i / per_byte)] >> (i % per_byte * bits) & ((1 << bits) - 1);
        const std::size_t at = BlockAt(j * blocks + k / block);
        weights[BlockAt(i)] = (code - static_cast<double>(middles[at])) * static_cast<double>(of_blocks[at]);
      }
    }
  }

  // The output of the kernel for x [rows, depth].
  std::string Multiply(HostTensor* x, HostTensor* bias, HostTensor* addend, bool bytes, HostTensor* out) {
    const std::int64_t panels = BlockedPanels(columns), blocks = depth / block;
    HostTensor packed =
        HostTensor::Empty<std::uint8_t>({panels, BlockedBytes(depth, static_cast<int>(bits))});
    HostTensor packed_scales = half ? HostTensor::Empty<Float16>({panels, blocks, kBlockedWidth})
                                    : HostTensor::Empty<float>({panels, blocks, kBlockedWidth});
    HostTensor offsets = HostTensor::Empty<float>({panels, blocks, kBlockedWidth});
    HostTensor none = HostTensor::Empty<float>({0});
    const AttributeList form = {{"columns", columns}, {"bits", bits}};
    if (std::string s = Run("rewire.blocked.pack", {&codes, &packed}, form); !s.empty()) return s;
    if (std::string s = Run("rewire.blocked.pack_scales", {&scales, &packed_scales}, {{"columns", columns}});
        !s.empty())
      return s;
    if (std::string s = Run("rewire.blocked.pack_offsets", {&scales, &zero_points, &offsets}, form);
        !s.empty())
      return s;
    return Run("rewire.blocked.matmul",
               {x, &packed, &packed_scales, zeros ? &offsets : &none, bias != nullptr ? bias : &none,
                addend != nullptr ? addend : &none, out},
               {{"columns", columns}, {"block", block}, {"bits", bits}, {"bytes", bytes ? 1 : 0}});
  }
};

// x as the kernel rounds it to bytes.
std::vector<double> Rounded(const std::vector<float>& x, std::int64_t block) {
  std::vector<double> rounded;
  for (std::size_t b = 0; b < x.size(); b += BlockAt(block)) {
    float most = 0;
    for (std::int64_t k = 0; k < block; ++k) most = std::max(most, std::fabs(x[b + BlockAt(k)]));
    for (std::int64_t k = 0; k < block; ++k) {
      const float whole = most == 0 ? 0 : std::nearbyint(x[b + BlockAt(k)] * (127 / most));
      rounded.push_back(static_cast<double>(whole) * static_cast<double>(most / 127));
    }
  }
  return rounded;
}

void CheckProduct(BlockedCase blocked, std::int64_t rows, bool bytes, bool added) {
  blocked.Make();
  CAPTURE(blocked.columns, blocked.depth, blocked.block, blocked.bits, blocked.half, blocked.zeros, rows,
          bytes);
  HostTensor x = HostTensor::Random({1, rows, blocked.depth}, 3);
  HostTensor bias = HostTensor::Random({blocked.columns}, 4);
  HostTensor addend = HostTensor::Random({1, rows, blocked.columns}, 5);
  HostTensor out = HostTensor::Empty<float>({1, rows, blocked.columns});
  REQUIRE(blocked.Multiply(&x, added ? &bias : nullptr, added ? &addend : nullptr, bytes, &out) == "");
  const std::vector<float> given = x.values<float>(), values = out.values<float>();
  std::vector<double> seen(given.begin(), given.end());
  if (bytes) seen = Rounded(given, blocked.block);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < blocked.columns; ++j) {
      double sum = 0, size = 1;
      for (std::int64_t k = 0; k < blocked.depth; ++k) {
        const double product =
            seen[BlockAt(i * blocked.depth + k)] * blocked.weights[BlockAt(j * blocked.depth + k)];
        sum += product;
        size += std::fabs(product);
      }
      const std::size_t at = BlockAt(i * blocked.columns + j);
      if (added)
        sum += static_cast<double>(bias.values<float>()[BlockAt(j)]) +
               static_cast<double>(addend.values<float>()[at]);
      if (!(std::fabs(static_cast<double>(values[at]) - sum) <= 2e-6 * size))
        FAIL("row " << i << ", column " << j << " is " << values[at] << ", expected " << sum);
    }
  }
}

TEST_CASE("blocked products: 4 and 8 bits, any number of rows and columns") {
  const std::int64_t bits = GENERATE(4, 8), rows = GENERATE(1, 3, 4, 11, 14);
  const bool bytes = GENERATE(false, true);
  CheckProduct({.columns = 40, .depth = 96, .block = 32, .bits = bits}, rows, bytes, false);
  CheckProduct({.columns = 17, .depth = 64, .block = 16, .bits = bits, .zeros = true}, rows, bytes, true);
  CheckProduct({.columns = 1, .depth = 640, .block = 128, .bits = bits, .half = true}, rows, bytes, true);
  CheckProduct({.columns = 33, .depth = 8, .block = 8, .bits = bits, .half = true, .zeros = true}, rows,
               bytes, false);
}

// A decoder's texts are rows: none of them may change with those that run beside it.
TEST_CASE("blocked products: a row has the same sums alone and among any number of rows") {
  const std::int64_t bits = GENERATE(4, 8);
  const bool bytes = GENERATE(false, true), zeros = GENERATE(false, true), added = GENERATE(false, true);
  // Blocks that segments cut, a last panel that is not whole, and two segments and a half.
  BlockedCase blocked{.columns = 83, .depth = 336, .block = 48, .bits = bits, .half = !zeros, .zeros = zeros};
  blocked.Make();
  constexpr std::int64_t kMost = 27;
  const std::vector<float> x = HostTensor::Random({kMost, blocked.depth}, 3).values<float>();
  const std::vector<float> addend = HostTensor::Random({kMost, blocked.columns}, 5).values<float>();
  HostTensor bias = HostTensor::Random({blocked.columns}, 4);
  const auto product = [&](std::int64_t first, std::int64_t rows) {
    const auto part = [&](const std::vector<float>& all, std::int64_t width) {
      return HostTensor::Of<float>({rows, width},
                                   {all.begin() + first * width, all.begin() + (first + rows) * width});
    };
    HostTensor given = part(x, blocked.depth), terms = part(addend, blocked.columns);
    HostTensor out = HostTensor::Empty<float>({rows, blocked.columns});
    REQUIRE(blocked.Multiply(&given, added ? &bias : nullptr, added ? &terms : nullptr, bytes, &out) == "");
    return out.values<float>();
  };
  std::vector<float> alone;
  for (std::int64_t row = 0; row < kMost; ++row) {
    const std::vector<float> one = product(row, 1);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  for (std::int64_t rows = 2; rows <= kMost; ++rows) {
    CAPTURE(bits, bytes, zeros, added, rows);
    CHECK(product(0, rows) == std::vector<float>(alone.begin(), alone.begin() + rows * blocked.columns));
  }
}

TEST_CASE("blocked products: no rows of weights give the bias and the addend") {
  BlockedCase blocked{.columns = 20, .depth = 0, .block = 8, .bits = 4};
  blocked.Make();
  HostTensor bias = HostTensor::Random({20}, 4);
  for (const std::int64_t rows : {1, 5, 13}) {
    HostTensor x = HostTensor::Empty<float>({rows, 0}), out = HostTensor::Empty<float>({rows, 20});
    REQUIRE(blocked.Multiply(&x, &bias, nullptr, false, &out) == "");
    const std::vector<float> values = out.values<float>();
    for (std::int64_t i = 0; i < rows * 20; ++i)
      CHECK(values[BlockAt(i)] == bias.values<float>()[BlockAt(i % 20)]);
  }
}

TEST_CASE("blocked products: zeros of packed bits") {
  HostTensor scales = HostTensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor zeros = HostTensor::Of<std::uint8_t>({4}, {0x98, 0x07, 0x80, 0x0F});
  HostTensor out = HostTensor::Empty<float>({1, 3, 16});
  REQUIRE(Run("rewire.blocked.pack_offsets", {&scales, &zeros, &out}, {{"columns", 2}}) == "");
  const std::vector<float> values = out.values<float>();
  const std::vector<float> expected[] = {{0, 2, -3}, {-32, 0, 42}};
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t b = 0; b < 3; ++b) CHECK(values[b * 16 + j] == expected[j][b]);
  }
  CHECK(std::count(values.begin(), values.end(), 0.0F) == 44);
}

TEST_CASE("blocked products: the addend may be the output") {
  BlockedCase blocked{.columns = 20, .depth = 32, .block = 32, .bits = 4};
  blocked.Make();
  for (const std::int64_t rows : {1, 6}) {
    HostTensor x = HostTensor::Random({rows, 32}, 1);
    HostTensor out = HostTensor::Random({rows, 20}, 2), apart = HostTensor::Empty<float>({rows, 20});
    HostTensor before = out;
    REQUIRE(blocked.Multiply(&x, nullptr, &before, false, &apart) == "");
    REQUIRE(blocked.Multiply(&x, nullptr, &out, false, &out) == "");
    CHECK(out.values<float>() == apart.values<float>());
  }
}

TEST_CASE("blocked products: rows of bytes with infinite and undefined elements") {
  BlockedCase blocked{.columns = 3, .depth = 16, .block = 8, .bits = 4};
  blocked.Make();
  const float bad = GENERATE(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  HostTensor x = HostTensor::Random({2, 16}, 1), out = HostTensor::Empty<float>({2, 3});
  x.elements<float>()[20] = bad;
  REQUIRE(blocked.Multiply(&x, nullptr, nullptr, true, &out) == "");
  const std::vector<float> values = out.values<float>();
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(std::isfinite(values[i]));
    CHECK(std::isnan(values[3 + i]));
  }
}

// Each instruction set computes one panel.
TEST_CASE("blocked products: every instruction set") {
  const int bits = GENERATE(4, 8);
  constexpr std::int64_t kDepth = 64, kBlock = 32;
  BlockedCase blocked{.columns = 16, .depth = kDepth, .block = kBlock, .bits = bits};
  blocked.Make();
  HostTensor packed = HostTensor::Empty<std::uint8_t>({1, BlockedBytes(kDepth, bits)});
  HostTensor scales = HostTensor::Empty<float>({1, 2, 16});
  REQUIRE(Run("rewire.blocked.pack", {&blocked.codes, &packed}, {{"columns", 16}, {"bits", bits}}) == "");
  REQUIRE(Run("rewire.blocked.pack_scales", {&blocked.scales, &scales}, {{"columns", 16}}) == "");
  const std::vector<std::uint8_t> codes = packed.values<std::uint8_t>();
  const std::vector<float> of_blocks = scales.values<float>();
  const BlockedPanel panel = {codes.data(), of_blocks.data(), nullptr, kDepth, kBlock, bits, false};
  const std::vector<float> x = HostTensor::Random({kMostBlockedCount * kDepth}, 9).values<float>();
  const float* rows[kMostBlockedCount];
  for (int i = 0; i < kMostBlockedCount; ++i) rows[i] = x.data() + i * kDepth;
  const std::vector<double> rounded = Rounded(x, kBlock);
  ForEachTarget([&] {
    const BlockedKernels kernels = ChooseBlockedKernels();
    std::vector<float> expanded(BlockAt(kDepth * 16));
    kernels.expand(panel, 0, kDepth, expanded.data(), 16);
    // The panels of floats add in the same order.
    float out[kMostBlockedCount * 16];
    kernel::cpu::PanelTile tile{};
    tile.rows = rows;
    tile.count = kMostBlockedCount;
    tile.segments = 1;
    tile.depth = kDepth;
    tile.panel = expanded.data();
    tile.columns = tile.step = 16;
    tile.out = out;
    kernel::cpu::ChoosePanelKernel().run(tile);
    for (int count = 1; count <= kMostBlockedCount; ++count) {
      float beside[kMostBlockedCount * 16];
      kernels.multiply(panel, rows, count, BlockedSums{1, nullptr, nullptr, beside});
      CHECK(std::equal(beside, beside + 16 * count, out));
    }
    std::int8_t bytes[kDepth];
    float row_scales[2], of_bytes[16];
    std::int32_t sums[2];
    kernels.quantize(x.data(), kDepth, kBlock, bytes, row_scales, sums);
    const BlockedBytesRow row = {bytes, row_scales, sums};
    if (kernels.multiply_bytes != nullptr) kernels.multiply_bytes(panel, &row, 1, of_bytes);
    for (std::int64_t j = 0; j < 16; ++j) {
      double sum = 0, of_rounded = 0;
      for (std::int64_t k = 0; k < kDepth; ++k) {
        const double weight = blocked.weights[BlockAt(j * kDepth + k)];
        CHECK(static_cast<double>(expanded[BlockAt(k * 16 + j)]) == Approx(weight));
        CHECK(static_cast<double>(static_cast<float>(bytes[k]) * row_scales[k / kBlock]) ==
              Approx(rounded[BlockAt(k)]));
        sum += static_cast<double>(x[BlockAt(k)]) * weight;
        of_rounded += rounded[BlockAt(k)] * weight;
      }
      CHECK(static_cast<double>(out[j]) == Approx(sum).margin(1e-4));
      if (kernels.multiply_bytes != nullptr)
        CHECK(static_cast<double>(of_bytes[j]) == Approx(of_rounded).margin(1e-4));
    }
  });
}

TEST_CASE("blocked products refuse what does not fit") {
  HostTensor x = HostTensor::Random({2, 32}, 1), w = HostTensor::Empty<std::uint8_t>({1, 256});
  HostTensor scales = HostTensor::Random({1, 1, 16}, 2), out = HostTensor::Empty<float>({2, 16});
  const auto call = [&](const AttributeList& attributes) {
    return Run("rewire.blocked.matmul", {&x, &w, &scales, &out}, attributes);
  };
  REQUIRE(call({{"columns", 16}, {"block", 32}}) == "");
  CHECK(call({{"columns", 16}}) == "ValueError: rewire.blocked.matmul: attribute 'block' is missing");
  CHECK(call({{"columns", 16}, {"block", 12}}) ==
        "ValueError: rewire.blocked.matmul: block is 12, expected a multiple of 8");
  CHECK(call({{"columns", 16}, {"block", 32}, {"bits", 5}}) ==
        "ValueError: rewire.blocked.matmul: bits is 5, expected 4 or 8");
  CHECK(call({{"columns", 16}, {"block", 24}}) ==
        "ValueError: rewire.blocked.matmul: x has shape [2, 32]: 32 rows of weights are no multiple of the "
        "block, 24");
  CHECK(call({{"columns", 16}, {"block", 32}, {"bits", 8}}) ==
        "ValueError: rewire.blocked.matmul: w has shape [1, 256], expected [1, 512]");
  CHECK(call({{"columns", 16}, {"block", 16}}) ==
        "ValueError: rewire.blocked.matmul: scales has shape [1, 1, 16], expected [1, 2, 16]");
  HostTensor codes = HostTensor::Empty<std::uint8_t>({5});
  CHECK(Run("rewire.blocked.pack", {&codes, &w}, {{"columns", 2}}) ==
        "ValueError: rewire.blocked.pack: w has shape [5], which 2 columns do not divide");
  HostTensor odd = HostTensor::Empty<std::uint8_t>({1, 3});
  CHECK(Run("rewire.blocked.pack", {&odd, &w}, {{"columns", 1}}) ==
        "ValueError: rewire.blocked.pack: w has shape [1, 3]: 6 rows are no multiple of 8");
}

}  // namespace
}  // namespace rewire::test
