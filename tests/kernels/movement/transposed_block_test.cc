// SPDX-License-Identifier: Apache-2.0
// Blocks whose rows and columns change places, against index arithmetic.
#include "rewire/kernels/cpu/movement/transposed_block.h"

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
        transpose(out.data(), kOutRow, in.data(), kInColumn, rows, columns);
        CAPTURE(rows, columns);
        REQUIRE(out == expected);
      }
    }
  });
}

}  // namespace
}  // namespace rewire::test
