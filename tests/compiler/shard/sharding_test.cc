// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/sharding.h"

#include <catch2/catch.hpp>

namespace rewire::test {
namespace {

using compiler::DimExpr;
using compiler::ReshapeOf;
using DimShape = compiler::Shape;
using compiler::Sharding;

std::string Reshaped(const Sharding& sharding, const DimShape& from, const DimShape& to) {
  const std::optional<Sharding> result = ReshapeOf(sharding, from, to, 2);
  return result ? result->Text() : "none";
}

TEST_CASE("equal segments are rows") {
  CHECK(Sharding::Split(1, 1, {4, 4, 4}) == Sharding::Split(1, 3, {4}));
  CHECK_FALSE(Sharding::Split(1, 1, {4, 2}) == Sharding::Split(1, 1, {2, 4}));
  CHECK(Sharding::Split(0, 1, {6, 4}).Text() == "axis 0 as 1 of 6 + 4");
}

TEST_CASE("a rank's dimensions") {
  const DimExpr n = DimExpr::Symbol("N");
  CHECK(ShapeText(compiler::PartDims(Sharding::Split(1, 8), {n, 8, 3}, 4)) == "[N, 2, 3]");
  CHECK(ShapeText(compiler::PartDims(Sharding::Split(0, n, {8}), {n * DimExpr(8), 3}, 4)) == "[2*N, 3]");
  CHECK_FALSE(compiler::Divides(Sharding::Split(1, 6), {n, 6}, 4));
  CHECK_FALSE(compiler::Divides(Sharding::Split(1, 8), {n, 6}, 4));
  CHECK(compiler::Divides(Sharding::Split(1, 1, {6, 2}), {n, 8}, 2));
}

TEST_CASE("a split axis through a reshape") {
  const DimExpr n = DimExpr::Symbol("N"), s = DimExpr::Symbol("S");
  const Sharding hidden = Sharding::Split(2, 64);
  // Heads come apart and together.
  CHECK(Reshaped(hidden, {n, s, 64}, {n, s, 4, 16}) == "axis 2");
  CHECK(Reshaped(Sharding::Split(2, 4), {n, s, 4, 16}, {n, s, 64}) == "axis 2");
  CHECK(Reshaped(hidden, {n, s, 64}, {n * s, 64}) == "axis 1");
  // Queries, keys and values side by side.
  const Sharding thirds = Sharding::Split(2, 1, {64, 64, 64});
  CHECK(Reshaped(thirds, {n, s, 192}, {n, s, 3, 4, 16}) == "axis 3");
  CHECK(Reshaped(Sharding::Split(3, 4), {n, s, 3, 4, 16}, {n, s, 192}) == "axis 2 as 3 of 64");
  CHECK(Reshaped(Sharding::Split(2, 1, {64, 16, 16}), {n, s, 96}, {n, s, 12, 8}) ==
        "axis 2 as 1 of 8 + 2 + 2");
  // Batch and heads become one axis, also where the batch is open.
  CHECK(Reshaped(Sharding::Split(1, 4), {n, 4, s, 16}, {n * DimExpr(4), s, 16}) == "axis 0 as N of 4");
  CHECK(Reshaped(Sharding::Split(0, n, {4}), {n * DimExpr(4), s, 16}, {n, 4, s, 16}) == "axis 1");
  // Three heads are not divided by two ranks, but their elements may be.
  CHECK(Reshaped(Sharding::Split(2, 1, {6}), {n, s, 6}, {n, s, 3, 2}) == "none");
  CHECK(Reshaped(hidden, {n, s, 64}, {64, n, s}) == "none");
}

}  // namespace
}  // namespace rewire::test
