// SPDX-License-Identifier: Apache-2.0
// Blocks whose rows and columns change places, against index arithmetic.
#include "rewire/kernels/cpu/movement/transposed_block.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

// Squares of each size, and what is left of them.
TEMPLATE_TEST_CASE("blocks are transposed with the vectors of every instruction set", "", std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t) {
  constexpr std::int64_t kMost = 37, kOutRow = kMost + 3, kInColumn = kMost + 5;
  std::vector<TestType> in(static_cast<std::size_t>(kMost * kInColumn));
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<TestType>(i * 7 + 1);
  ForEachTarget([&] {
    const auto transpose =
        std::get<kernel::cpu::TransposeBlock<TestType>>(kernel::cpu::ChooseBlockTransposes());
    for (const std::int64_t rows : {0, 1, 3, 4, 8, 15, 16, 21, 37}) {
      for (const std::int64_t columns : {0, 1, 2, 4, 5, 8, 14, 16, 17, 32, 37}) {
        std::vector<TestType> out(static_cast<std::size_t>(kMost * kOutRow), TestType{9});
        std::vector<TestType> expected = out;
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c)
            expected[static_cast<std::size_t>(r * kOutRow + c)] =
                in[static_cast<std::size_t>(r + c * kInColumn)];
        }
        CAPTURE(rows, columns);
        transpose(out.data(), kOutRow, in.data(), kInColumn, rows, columns, false);
        REQUIRE(out == expected);
      }
    }
  });
}

// Past the caches, so that whole lines of 64 bytes are written.
TEMPLATE_TEST_CASE("blocks of whole lines", "", std::uint16_t, std::uint32_t, std::uint64_t) {
  constexpr std::int64_t kRows = 35, kColumns = 45, kOutRow = 64;
  std::vector<TestType> in(kRows * kColumns);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<TestType>(i * 7 + 1);
  ForEachTarget([&] {
    alignas(64) static TestType out[kRows * kOutRow];
    std::fill_n(out, kRows * kOutRow, TestType{9});
    std::get<kernel::cpu::TransposeBlock<TestType>>(kernel::cpu::ChooseBlockTransposes())(
        out, kOutRow, in.data(), kRows, kRows, kColumns, true);
    hwy::FlushStream();
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kOutRow; ++c) {
        const TestType expected = c < kColumns ? in[static_cast<std::size_t>(r + c * kRows)] : TestType{9};
        if (out[r * kOutRow + c] != expected) FAIL("row " << r << ", column " << c);
      }
    }
  });
}

}  // namespace
}  // namespace rewire::test
