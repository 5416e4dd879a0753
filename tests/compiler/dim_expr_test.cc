// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/dim_expr.h"

#include <catch2/catch.hpp>
#include <limits>
#include <optional>
#include <string>

#include "rewire/compiler/ir/dim_length.h"

namespace rewire::compiler {
namespace {

const DimExpr kN = DimExpr::Symbol("N");
const DimExpr kM = DimExpr::Symbol("M");

TEST_CASE("sums of products have one form") {
  CHECK(kN + kN + kM == kM + DimExpr(2) * kN);
  CHECK((kN + DimExpr(1)) * (kN - DimExpr(1)) == kN * kN - DimExpr(1));
  CHECK((kN - kN).Is(0));
  CHECK((kN * DimExpr(0)).text() == "0");
  CHECK((DimExpr(3) * kN + DimExpr(2)).text() == "3*N + 2");
}

TEST_CASE("what divides evenly is divided") {
  CHECK(DimExpr::FloorDiv(DimExpr(4) * kN + DimExpr(3), 2) == DimExpr(2) * kN + DimExpr(1));
  CHECK(DimExpr::FloorDiv(DimExpr(6) * kN * kM, DimExpr(2) * kN) == DimExpr(3) * kM);
  CHECK(DimExpr::FloorDiv(kN, kN).Is(1));
  CHECK(DimExpr::FloorDiv(kN, 2).text() == "floor((N) / (2))");
  CHECK(DimExpr::FloorDiv(-7, 2).Is(-4));
  CHECK(DimExpr::CeilDiv(7, 2).Is(4));
}

TEST_CASE("sums divide by sums, if a single product is left") {
  const DimExpr rows = DimExpr::FloorDiv(kN, 4) + DimExpr(1), columns = DimExpr::FloorDiv(kM, 4) + DimExpr(1);
  CHECK(DimExpr::FloorDiv(DimExpr(256) * rows * columns, rows * columns).Is(256));
  CHECK(DimExpr::FloorDiv(DimExpr(6) * kN * rows, DimExpr(2) * rows) == DimExpr(3) * kN);
  CHECK(DimExpr::ExactQuotient(kN * kN * columns, columns) == kN * kN);
  CHECK_FALSE(DimExpr::ExactQuotient(DimExpr(255) * rows * columns + kN, rows * columns));
  CHECK_FALSE(DimExpr::ExactQuotient(DimExpr(3) * rows, DimExpr(2) * rows));
  CHECK_FALSE(DimExpr::ExactQuotient(kN, 0));
  CHECK(DimExpr::FloorDiv(rows, columns).text().starts_with("floor("));
}

TEST_CASE("expressions take the places of symbols") {
  const auto of_symbol = [](const std::string& name) -> std::optional<DimExpr> {
    if (name != "N") return std::nullopt;
    return DimExpr(2) * kM + DimExpr(1);
  };
  CHECK((kN * kN - kM).Replaced(of_symbol) == DimExpr(4) * kM * kM + DimExpr(3) * kM + DimExpr(1));
  CHECK(DimExpr::FloorDiv(kN, 2).Replaced(of_symbol) == kM);
  CHECK(DimExpr::Min(kN, 7).Replaced(of_symbol) == DimExpr::Min(DimExpr(2) * kM + DimExpr(1), 7));
  CHECK(DimExpr::Max(kN, kM).Replaced(of_symbol) == DimExpr(2) * kM + DimExpr(1));
}

TEST_CASE("arithmetic saturates") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK((DimExpr(most) + DimExpr(most)).Is(most));
  CHECK((DimExpr(most) * DimExpr(-2)).Is(std::numeric_limits<std::int64_t>::min()));
}

TEST_CASE("maxima and minima do not depend on the order") {
  CHECK(DimExpr::Max(kN, kM) == DimExpr::Max(kM, kN));
  CHECK(DimExpr::Min(kN, kN) == kN);
  CHECK(DimExpr::Max(3, 5).Is(5));
  CHECK(kN.symbol() == "N");
  CHECK_FALSE((kN + DimExpr(1)).symbol());
}

TEST_CASE("maxima and minima that can be told are") {
  const DimExpr capped = DimExpr::Min(kN, 512);
  CHECK(capped.text() == "min(512, N)");
  CHECK(DimExpr::Max(kN + DimExpr(1), kN) == kN + DimExpr(1));
  CHECK(DimExpr::Max(kN, 0) == kN);
  CHECK(DimExpr::Max(kN, 1).text() == "max(1, N)");
  CHECK(DimExpr::Max(kN, kM).text() == "max(M, N)");
  // Of what one of two is at most, the larger is the other.
  CHECK(DimExpr::Max(kN, capped) == kN);
  CHECK(DimExpr::Min(kN, capped) == capped);
  CHECK(DimExpr::Max(kM, capped).text() == "max(M, min(512, N))");
  const DimExpr larger = DimExpr::Max(kN, kM);
  CHECK(DimExpr::Max(larger, kM) == larger);
  CHECK(DimExpr::Min(larger, kN) == kN);
  CHECK(DimExpr::Max(larger, DimExpr::Max(kM, DimExpr::Symbol("K"))).text() == "max(max(K, M), max(M, N))");
}

TEST_CASE("what is taken off a minimum is compared with") {
  // A window on min(512, ...) positions: from N on, M more of them.
  const DimExpr window = DimExpr::Min(kN + kM, 512) - DimExpr::Min(kN, 512);
  CHECK(DimExpr::Max(window, 0) == window);
  CHECK(DimExpr::Max(kM, window) == kM);
  CHECK(DimExpr::Min(kM, window) == window);
  CHECK(DimExpr::Max(kM - DimExpr(1), window).text().starts_with("max("));
  CHECK(DimExpr::Max(DimExpr(2) * window, DimExpr(2) * kM) == DimExpr(2) * kM);
  const DimExpr larger = DimExpr::Max(kN, kM);
  CHECK(DimExpr::Max(kN + kM, larger) == kN + kM);
  CHECK(DimExpr::Max(larger, kN + kM - DimExpr::Min(kN, kM)) == larger);
}

TEST_CASE("of an expression that is too long nothing is said") {
  DimExpr sum = 0;
  for (int i = 0; !IsTooLong(sum); ++i)
    sum = sum + DimExpr::Symbol("symbol" + std::to_string(i)) * DimExpr(i + 2);
  CHECK(IsTooLong(DimExpr::Max(kN, sum)));
  // Each is short enough, their difference is not.
  const auto half = [](const std::string& name) {
    DimExpr terms = 0;
    while (terms.text().size() < kMostDimText * 2 / 3)
      terms = terms + DimExpr::Symbol(name + std::to_string(terms.text().size()));
    return terms;
  };
  const DimExpr a = half("a"), b = half("b");
  CHECK(IsTooLong(a - b));
  CHECK(DimExpr::Max(a, b) != a);
  CHECK(DimExpr::Min(a, b) != a);
}

TEST_CASE("an expression lies between what its symbols allow") {
  const auto of_symbol = [](const std::string& name) {
    return name == "N" ? Interval{0, 20} : Interval::FromZero();
  };
  const auto most = [&](const DimExpr& expression) { return expression.Bounds(of_symbol).most; };
  CHECK(most(DimExpr(3) * kN + DimExpr(2)) == 62);
  CHECK(most(DimExpr::FloorDiv(kN - DimExpr(1), 2) + DimExpr(1)) == 10);
  CHECK(most(DimExpr(20) - kN) == 20);
  CHECK(most(kM) == Interval::kNoMost);
  CHECK(most(DimExpr::Min(kM, kN)) == 20);
  CHECK(most(DimExpr::Max(kM, kN)) == Interval::kNoMost);
  CHECK((kN - DimExpr(3)).Bounds().least == -3);
  CHECK((kN - kM).Bounds().least == Interval::kNoLeast);
}

TEST_CASE("programs are postfix") {
  std::vector<std::int64_t> program;
  (DimExpr(2) * kN + DimExpr(1))
      .AppendProgram(
          [](const std::string&) {
            return DimExpr::Source{0, 3};
          },
          &program);
  CHECK(program == std::vector<std::int64_t>{DimExpr::kPush, 1, DimExpr::kPush, 2, DimExpr::kDim, 0, 3,
                                             DimExpr::kMultiply, DimExpr::kAdd});
}

}  // namespace
}  // namespace rewire::compiler
