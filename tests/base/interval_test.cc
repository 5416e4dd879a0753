// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/interval.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace rewire {
namespace {

std::int64_t Floor(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

TEST_CASE("every result lies in the interval, and its ends are met where one step tells") {
  struct Operation {
    Interval (*of)(Interval a, Interval b);
    std::int64_t (*apply)(std::int64_t a, std::int64_t b);
  };
  const Operation operation =
      GENERATE(Operation{SumOf, [](std::int64_t a, std::int64_t b) { return a + b; }},
               Operation{ProductOf, [](std::int64_t a, std::int64_t b) { return a * b; }},
               Operation{FloorQuotientOf, Floor},
               Operation{LargerOf, [](std::int64_t a, std::int64_t b) { return std::max(a, b); }},
               Operation{SmallerOf, [](std::int64_t a, std::int64_t b) { return std::min(a, b); }});
  for (std::int64_t a = -4; a <= 4; ++a) {
    for (std::int64_t b = a; b <= 4; ++b) {
      for (std::int64_t c = -4; c <= 4; ++c) {
        for (std::int64_t d = c; d <= 4; ++d) {
          Interval met = {Interval::kNoMost, Interval::kNoLeast};
          for (std::int64_t x = a; x <= b; ++x) {
            for (std::int64_t y = c; y <= d; ++y) {
              const std::int64_t value = operation.apply(x, y);
              met = {std::min(met.least, value), std::max(met.most, value)};
            }
          }
          const Interval said = operation.of({a, b}, {c, d});
          CHECK(said.least == met.least);
          CHECK(said.most == met.most);
        }
      }
    }
  }
}

TEST_CASE("what has no end stays without") {
  const Interval dimension = Interval::FromZero();
  CHECK(SumOf(dimension, Interval::Of(1)).least == 1);
  CHECK(SumOf(dimension, Interval::Of(1)).most == Interval::kNoMost);
  CHECK(ProductOf(dimension, Interval::Of(-1)).least == Interval::kNoLeast);
  CHECK(ProductOf(dimension, Interval::Of(-1)).most == 0);
  CHECK(ProductOf(dimension, Interval::Of(0)).most == 0);
  CHECK(FloorQuotientOf(dimension, Interval::Of(2)).least == 0);
  CHECK(FloorQuotientOf(dimension, Interval::Of(2)).most == Interval::kNoMost);
  CHECK(FloorQuotientOf(Interval::Of(-5), {1, Interval::kNoMost}).least == -5);
  CHECK(FloorQuotientOf(Interval::Of(-5), {1, Interval::kNoMost}).most == -1);
  CHECK(FloorQuotientOf({Interval::kNoLeast, 5}, Interval::Of(-1)).least == -5);
  CHECK(SmallerOf(dimension, Interval::Of(512)).most == 512);
  CHECK(LargerOf({Interval::kNoLeast, 3}, Interval::Of(0)).least == 0);
}

TEST_CASE("what does not fit has no end") {
  const std::int64_t large = Interval::kNoMost - 1;
  CHECK(SumOf(Interval::Of(large), Interval::Of(large)).most == Interval::kNoMost);
  CHECK(SumOf(Interval::Of(-large), Interval::Of(-large)).least == Interval::kNoLeast);
  CHECK(ProductOf(Interval::Of(large), Interval::Of(-2)).least == Interval::kNoLeast);
}

}  // namespace
}  // namespace rewire
