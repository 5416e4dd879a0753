// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/dim_parser.h"

#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <string>

namespace rewire::compiler {
namespace {

std::optional<DimExpr> Known(const std::string& name, std::optional<std::int64_t> index) {
  if (index) return name == "x" && *index < 2 ? std::optional(DimExpr(10 + *index)) : std::nullopt;
  return name == "N" || name == "M" ? std::optional(DimExpr::Symbol(name)) : std::nullopt;
}

DimExpr Read(const std::string& text) {
  const Result<DimExpr> read = ParseDimExpr(text, Known);
  INFO(text);
  if (!read) FAIL(read.error().message());
  return *read;
}

std::string ErrorOf(const std::string& text) {
  const Result<DimExpr> read = ParseDimExpr(text, Known);
  return read ? "read as " + read->text() : read.error().message();
}

TEST_CASE("dimensions are read as arithmetic") {
  const DimExpr n = DimExpr::Symbol("N"), m = DimExpr::Symbol("M");
  CHECK(Read("2 * N + M") == DimExpr(2) * n + m);
  CHECK(Read("N - M - 1") == n - m - DimExpr(1));
  CHECK(Read("-(N - M)*3") == (m - n) * DimExpr(3));
  CHECK(Read("2 * -3").Is(-6));
  CHECK(Read("ceil(N / 2)") == DimExpr::CeilDiv(n, 2));
  CHECK(Read("floor((N - 1) / M) + 1") == DimExpr::FloorDiv(n - DimExpr(1), m) + DimExpr(1));
  CHECK(Read("floor(2 * N / 4)") == DimExpr::FloorDiv(DimExpr(2) * n, 4));
  CHECK(Read("max(N, M, 3)") == DimExpr::Max(DimExpr::Max(n, m), 3));
  CHECK(Read("min(N, 3)") == DimExpr::Min(n, 3));
  CHECK(Read("broadcast(N, M)") == DimExpr::Broadcast(n, m));
  CHECK(Read("x[0] + x[1]").Is(21));
}

TEST_CASE("the text of an expression is read as that expression") {
  std::mt19937 random(7);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  for (int round = 0; round < 300; ++round) {
    DimExpr made = DimExpr::Symbol("N");
    for (int step = 0; step < 5; ++step) {
      const DimExpr other = below(2) == 0 ? DimExpr::Symbol("M") + DimExpr(below(5)) : DimExpr(below(9) + 1);
      switch (below(7)) {
        case 0:
          made = made + other;
          break;
        case 1:
          made = made - other;
          break;
        case 2:
          made = made * other;
          break;
        case 3:
          made = DimExpr::FloorDiv(made, other);
          break;
        case 4:
          made = DimExpr::Max(made, other);
          break;
        case 5:
          made = DimExpr::Min(made, other);
          break;
        default:
          made = DimExpr::Broadcast(made, other);
          break;
      }
    }
    CHECK(Read(made.text()) == made);
  }
}

TEST_CASE("errors name the place in a dimension") {
  CHECK(ErrorOf("") == "dimension '': expected a number or a name, given its end");
  CHECK(ErrorOf("N +") == "dimension 'N +': expected a number or a name, given its end");
  CHECK(ErrorOf("N M") == "dimension 'N M': expected an operator, given 'M'");
  CHECK(ErrorOf("(N") == "dimension '(N': expected ')', given its end");
  CHECK(ErrorOf("N / 2") ==
        "dimension 'N / 2': expected floor(a / b) or ceil(a / b) around a quotient, given '/ 2'");
  CHECK(ErrorOf("floor(N)") == "dimension 'floor(N)': expected '/', given ')'");
  CHECK(ErrorOf("ceil(N / 0)") == "dimension 'ceil(N / 0)' divides by 0");
  CHECK(ErrorOf("sqrt(N)") ==
        "dimension 'sqrt(N)': expected floor, ceil, max, min or broadcast, given 'sqrt(N)'");
  CHECK(ErrorOf("x[2]") == "dimension 'x[2]': 'x[2]' is no dimension of an input and no integer attribute");
  CHECK(ErrorOf("K") == "dimension 'K': 'K' is no dimension of an input and no integer attribute");
  CHECK(ErrorOf("99999999999999999999") ==
        "dimension '99999999999999999999': expected an integer of 64 bits, given '99999999999999999999'");
  CHECK_THAT(ErrorOf(std::string(1000, '(') + "N"),
             Catch::Contains("expected at most 32 levels of parentheses"));
}

}  // namespace
}  // namespace rewire::compiler
