// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/checked_math.h"

#include <catch2/catch.hpp>
#include <limits>

using rewire::CheckedAdd;
using rewire::CheckedAlignUp;
using rewire::CheckedMul;

TEST_CASE("sums and products at the edge of the type") {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  CHECK(CheckedAdd<std::uint64_t>(kMax - 1, 1) == kMax);
  CHECK_FALSE(CheckedAdd<std::uint64_t>(kMax, 1).has_value());
  CHECK(CheckedMul<std::uint64_t>(kMax / 5, 5) == kMax);
  CHECK_FALSE(CheckedMul<std::uint64_t>(kMax / 5 + 1, 5).has_value());
  CHECK(CheckedMul<std::uint64_t>(kMax, 0) == 0U);
}

TEST_CASE("signed types overflow in both directions") {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  CHECK_FALSE(CheckedAdd<std::int64_t>(kMin, -1).has_value());
  CHECK_FALSE(CheckedMul<std::int64_t>(kMin, -1).has_value());
  CHECK(CheckedMul<std::int64_t>(kMin / 2, 2) == kMin);
}

TEST_CASE("rounding up to an alignment") {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  CHECK(CheckedAlignUp<std::uint64_t>(0, 64) == 0U);
  CHECK(CheckedAlignUp<std::uint64_t>(1, 64) == 64U);
  CHECK(CheckedAlignUp<std::uint64_t>(64, 64) == 64U);
  CHECK(CheckedAlignUp<std::uint64_t>(65, 64) == 128U);
  CHECK(CheckedAlignUp<std::uint64_t>(7, 1) == 7U);
  CHECK(CheckedAlignUp<std::uint64_t>(kMax - 63, 64) == kMax - 63);
  CHECK_FALSE(CheckedAlignUp<std::uint64_t>(kMax - 62, 64).has_value());
}

TEST_CASE("powers of two") {
  CHECK_FALSE(rewire::IsPowerOfTwo(0));
  CHECK(rewire::IsPowerOfTwo(1));
  CHECK(rewire::IsPowerOfTwo(std::uint64_t{1} << 63));
  CHECK_FALSE(rewire::IsPowerOfTwo(96));
}
