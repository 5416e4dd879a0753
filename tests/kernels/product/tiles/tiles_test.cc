// SPDX-License-Identifier: Apache-2.0
// Products by tile registers, beside sums in plain loops. Skipped where the CPU has none.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "rewire/kernels/cpu/product/tiles/tiles.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::test {
namespace {

using namespace rewire::kernel::cpu;

struct alignas(kLineBytes) Line {
  std::byte bytes[kLineBytes];
};

// Elements as tiles read them, which begin with a line of the cache.
template <typename T>
class Elements {
 public:
  explicit Elements(std::int64_t bytes) : lines_(static_cast<std::size_t>(bytes / kLineBytes + 1)) {
    std::memset(lines_.data(), 0xFF, lines_.size() * sizeof(Line));  // NaN where nothing is written
  }
  std::byte* data() { return lines_[0].bytes; }
  T& at(std::int64_t bytes) { return *reinterpret_cast<T*>(data() + bytes); }

 private:
  std::vector<Line> lines_;
};

float ValueOf(BFloat16 value) { return static_cast<float>(value); }
template <typename T>
std::int64_t ValueOf(T value) {
  return value;
}

// Rows of segments by a panel. X and W are the elements of units: pairs of bf16 or quads of bytes.
template <typename X, typename W>
void CheckTiles(TileUnit unit, std::int64_t count, std::int64_t segments, std::int64_t depth,
                std::int64_t width) {
  INFO(count << " rows of " << segments << " times " << depth << " units, " << width << " columns");
  using Sum = decltype(ValueOf(X()));
  constexpr std::int64_t kOfUnit = kUnitBytes / static_cast<std::int64_t>(sizeof(X));
  std::mt19937 random(7);
  const auto some = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    if constexpr (std::is_same_v<T, BFloat16>)
      *to = BFloat16(std::uniform_real_distribution<float>(-1, 1)(random));
    else
      *to = static_cast<T>(random());
  };
  const std::int64_t lines = (depth + kLineUnits - 1) / kLineUnits;
  // Segments lie behind each other with a line of NaN between them. Rows overlap: row i + 1 begins within row
  // i.
  const std::int64_t row_bytes = lines * kLineBytes, segment_bytes = 40 * row_bytes + kLineBytes;
  Elements<X> x(segments * segment_bytes + 64 * row_bytes);
  std::vector<std::int64_t> segment_at;
  for (std::int64_t s = 0; s < segments; ++s) {
    segment_at.push_back(s * segment_bytes);
    for (std::int64_t i = 0; i < kBlockRows; ++i) {
      for (std::int64_t k = 0; k < lines * kLineUnits * kOfUnit; ++k) {
        X& element = x.at(segment_at.back() + i * row_bytes + k * static_cast<std::int64_t>(sizeof(X)));
        element = X();
        if (k < depth * kOfUnit) some(&element);
      }
    }
  }
  const std::int64_t units = segments * depth;
  // The words behind the panel are no number, and would make others none.
  const std::int64_t of_panel = units * width * kOfUnit;
  std::vector<W> w(static_cast<std::size_t>(of_panel + kLineUnits * width * kOfUnit));
  std::memset(static_cast<void*>(w.data()), 0xFF, w.size() * sizeof(W));
  for (std::int64_t i = 0; i < of_panel; ++i) some(&w[static_cast<std::size_t>(i)]);
  Elements<std::conditional_t<std::is_same_v<Sum, float>, float, std::int32_t>> sums(
      kBlockRows * kPanelWidth * kUnitBytes);
  const TileRows rows = {x.data(), row_bytes, segments, segment_at.data(), depth};
  {
    const TileRegisters registers;
    registers.Multiply(unit, rows, count, TileWeights(w.data(), units, depth, width), sums.data());
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      double expected = 0;
      for (std::int64_t s = 0; s < segments; ++s) {
        for (std::int64_t k = 0; k < depth * kOfUnit; ++k) {
          const X left = x.at(segment_at[static_cast<std::size_t>(s)] + i * row_bytes +
                              k * static_cast<std::int64_t>(sizeof(X)));
          const W right =
              w[static_cast<std::size_t>(((s * depth + k / kOfUnit) * width + j) * kOfUnit + k % kOfUnit)];
          expected += static_cast<double>(ValueOf(left)) * static_cast<double>(ValueOf(right));
        }
      }
      const double sum = sums.at((i * kPanelWidth + j) * kUnitBytes);
      // A sum that is no number is not near.
      if (std::is_same_v<Sum, float> ? !(std::fabs(sum - expected) <= 1e-5 * static_cast<double>(units))
                                     : sum != expected)
        FAIL("row " << i << ", column " << j << ": " << sum << ", expected " << expected);
    }
  }
  if (unit == TileUnit::kBytes) {
    std::vector<std::int32_t> row_sums(static_cast<std::size_t>(count));
    SumBytes(rows, count, row_sums.data());
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t expected = 0;
      for (std::int64_t s = 0; s < segments; ++s) {
        for (std::int64_t k = 0; k < depth * kOfUnit; ++k)
          expected += ValueOf(x.at(segment_at[static_cast<std::size_t>(s)] + i * row_bytes + k));
      }
      CHECK(row_sums[static_cast<std::size_t>(i)] == expected);
    }
  }
}

}  // namespace

TEST_CASE("tiles add the products of units") {
  if (!HasTiles()) {
    std::puts("skipped: this CPU has no AMX, or the system does not let the process use it");
    std::exit(77);
  }
  for (const std::int64_t count : {1, 7, 16, 17, 32}) {
    for (const std::int64_t depth : {1, 15, 16, 17, 40}) {
      for (const std::int64_t width : {16, 32}) {
        for (const std::int64_t segments : {1, 3}) {
          CheckTiles<BFloat16, BFloat16>(TileUnit::kPairs, count, segments, depth, width);
          CheckTiles<std::uint8_t, std::int8_t>(TileUnit::kBytes, count, segments, depth, width);
          CheckTiles<std::int8_t, std::int8_t>(TileUnit::kSignedBytes, count, segments, depth, width);
        }
      }
    }
  }
}

TEST_CASE("lines are copied with zeros behind them") {
  if (!HasTiles()) return;
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 130}) {
    constexpr std::int64_t kRows = 3, kStep = 256;
    // Rows overlap: each begins a byte behind the one before.
    std::vector<std::byte> from;
    for (std::int64_t i = 0; i < bytes + kRows - 1; ++i) from.push_back(static_cast<std::byte>(i % 100));
    std::vector<std::byte> to(kRows * kStep, std::byte{1});
    CopyToLines({from.data(), 1, bytes, kRows, to.data(), kStep, std::byte{0x80}});
    const std::int64_t lines = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t i = 0; i < kStep; ++i) {
        CHECK(std::to_integer<int>(to[static_cast<std::size_t>(row * kStep + i)]) ==
              (i < bytes   ? 0x80 + (row + i) % 100
               : i < lines ? 0
                           : 1));
      }
    }
  }
}

TEST_CASE("pieces are spread to lines, also over those that were read") {
  if (!HasTiles()) return;
  for (const std::int64_t bytes : {1, 40, 64, 100}) {
    for (const std::int64_t step : {1, 24}) {
      constexpr std::int64_t kCount = 5;
      const std::int64_t of_line = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
      const std::int64_t all = kCount * of_line, narrow = all - (kCount - 1) * step - bytes;
      Elements<std::byte> lines(all);
      for (std::int64_t i = narrow; i < all; ++i) lines.at(i) = static_cast<std::byte>(1 + i % 200);
      CopyToLines({lines.data() + narrow, step, bytes, kCount, lines.data(), of_line});
      for (std::int64_t i = 0; i < all; ++i) {
        const std::int64_t piece = i / of_line, at = i % of_line;
        const auto expected = at < bytes ? 1 + (narrow + piece * step + at) % 200 : 0;
        if (std::to_integer<std::int64_t>(lines.at(i)) != expected)
          FAIL("byte " << at << " of line " << piece << ", pieces of " << bytes << ", " << step << " apart");
      }
    }
  }
}

}  // namespace rewire::test
