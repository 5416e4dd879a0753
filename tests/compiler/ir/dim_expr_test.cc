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
  // The larger of a number and something that is at most that is the number.
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

TEST_CASE("sizes broadcast to one of them, which is the other of 1") {
  const DimExpr kK = DimExpr::Symbol("K");
  CHECK(DimExpr::Broadcast(kN, kN) == kN);
  CHECK(DimExpr::Broadcast(kN, 1) == kN);
  CHECK(DimExpr::Broadcast(1, kN) == kN);
  // A size beside one that is known and not 1 can only be the same or 1.
  CHECK(DimExpr::Broadcast(kN, 3).Is(3));
  CHECK(DimExpr::Broadcast(0, kN).Is(0));
  CHECK(DimExpr::Broadcast(kN + DimExpr(2), kM) == kN + DimExpr(2));
  // Neither is the result of 0 and 1.
  CHECK(DimExpr::Broadcast(kN, kM).text() == "broadcast(M, N)");
  CHECK(DimExpr::Broadcast(kN, kM) == DimExpr::Broadcast(kM, kN));
  CHECK(DimExpr::Broadcast(kN + DimExpr(1), kN).text() == "broadcast(N, N + 1)");
  // All orders and repetitions of the same sizes are one expression.
  const DimExpr both = DimExpr::Broadcast(kN, kM);
  CHECK(DimExpr::Broadcast(both, kM) == both);
  CHECK(DimExpr::Broadcast(DimExpr::Broadcast(kM, kK), both) ==
        DimExpr::Broadcast(DimExpr::Broadcast(kN, kK), kM));
  CHECK(DimExpr::Broadcast(both, 7).Is(7));
  // The larger, if the smaller is never 0 beside its 1.
  CHECK(DimExpr::Broadcast(kN, DimExpr::Min(kN, 512)) == kN);
  CHECK(DimExpr::Broadcast(DimExpr::Max(kN, 1), kM).text() == "broadcast(M, max(1, N))");
  CHECK(DimExpr::Broadcast(DimExpr::Max(kN, 1), 1) == DimExpr::Max(kN, 1));
  const DimExpr window = DimExpr::Min(kN + kM, 512) - DimExpr::Min(kN, 512);
  CHECK(DimExpr::Broadcast(kM, window) != kM);
  // Bounds and replacements.
  CHECK(both.Bounds().least == 0);
  CHECK(both.Replaced([](const std::string& name) -> std::optional<DimExpr> {
    return name == "N" ? std::optional<DimExpr>(1) : std::nullopt;
  }) == kM);
  CHECK(DimExpr::Max(both, both - DimExpr(1)) == both);
  CHECK(DimExpr::Max(kN + kM, both) == kN + kM);
  CHECK(DimExpr::Max(both, kN).text() == "max(N, broadcast(M, N))");
}

TEST_CASE("what broadcasting implies takes minima away") {
  const DimExpr all = kN + kM;
  const auto fact = DimExpr::ImpliedByBroadcast(DimExpr::Min(all, 512), all);
  REQUIRE(fact);
  CHECK(fact->most == 512);
  const DimExpr window = DimExpr::Min(all, 512) - DimExpr::Min(kN, 512);
  CHECK(window.Given(*fact) == kM);
  CHECK(DimExpr::IsWindow(window, kM));
  CHECK_FALSE(DimExpr::IsWindow(window, kN));
  CHECK_FALSE(DimExpr::IsWindow(DimExpr::Min(kN, 512), 1));
  CHECK_FALSE(DimExpr::IsWindow(kN, kN));
  // A window of one token.
  CHECK(DimExpr::IsWindow(DimExpr::Min(kN + DimExpr(1), 512) - DimExpr::Min(kN, 512), 1));
  CHECK(DimExpr::Min(all, 511).Given(*fact) == DimExpr::Min(all, 511));
  CHECK(DimExpr::Min(all + DimExpr(1), 512).Given(*fact) == DimExpr::Min(all + DimExpr(1), 512));
  // If at most 1 is left, any size will do.
  CHECK_FALSE(DimExpr::ImpliedByBroadcast(all, DimExpr::Min(all, 1)));
  CHECK_FALSE(DimExpr::ImpliedByBroadcast(all, DimExpr::Min(kN, 512)));
  CHECK_FALSE(DimExpr::ImpliedByBroadcast(all, all));
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
  CHECK(most(DimExpr::Broadcast(kM, kN)) == Interval::kNoMost);
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
  CHECK(program == std::vector<std::int64_t>{SizeCodes::kPush, 1, SizeCodes::kPush, 2, SizeCodes::kDim, 0, 3,
                                             SizeCodes::kMultiply, SizeCodes::kAdd});
}

}  // namespace
}  // namespace rewire::compiler
