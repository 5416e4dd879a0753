// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/sharding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace rewire::compiler {
namespace {

bool AllDivide(const std::vector<std::int64_t>& segments, std::int64_t ranks) {
  return !segments.empty() && std::all_of(segments.begin(), segments.end(),
                                          [&](std::int64_t size) { return size > 0 && size % ranks == 0; });
}

DimExpr ProductOfRange(const Shape& dims, std::size_t begin, std::size_t end) {
  DimExpr product = 1;
  for (std::size_t i = begin; i < end; ++i) product = product * dims[i];
  return product;
}

std::optional<DimExpr> Quotient(const DimExpr& a, const DimExpr& b) {
  if (a == b) return DimExpr(1);
  if (b.Is(0)) return std::nullopt;
  return DimExpr::ExactQuotient(a, b);
}

}  // namespace

Sharding Sharding::Partial() {
  Sharding partial;
  partial.kind = Kind::kPartial;
  return partial;
}

Sharding Sharding::Split(int axis, const DimExpr& outer, std::vector<std::int64_t> segments) {
  Sharding split;
  split.kind = Kind::kSplit;
  split.axis = axis;
  split.outer = outer;
  const bool equal = std::all_of(segments.begin(), segments.end(),
                                 [&](std::int64_t size) { return size == segments.front(); });
  if (equal && segments.size() > 1) {
    split.outer = outer * DimExpr(static_cast<std::int64_t>(segments.size()));
    segments.resize(1);
  }
  split.segments = std::move(segments);
  return split;
}

bool Sharding::operator==(const Sharding& other) const {
  if (kind != other.kind) return false;
  return kind != Kind::kSplit || (axis == other.axis && outer == other.outer && segments == other.segments);
}

std::int64_t Sharding::RowSize() const {
  return std::accumulate(segments.begin(), segments.end(), std::int64_t{0});
}

Sharding Sharding::Along(int other) const {
  Sharding moved = *this;
  moved.axis = other;
  return moved;
}

std::string Sharding::Text() const {
  switch (kind) {
    case Kind::kWhole:
      return "whole";
    case Kind::kPartial:
      return "partial";
    case Kind::kSplit:
      break;
  }
  if (IsPlain()) return fmt::format("axis {}", axis);
  return fmt::format("axis {} as {} of {}", axis, outer.text(), fmt::join(segments, " + "));
}

Shape PartDims(const Sharding& sharding, Shape dims, std::int64_t ranks) {
  if (sharding.IsSplit()) {
    dims[static_cast<std::size_t>(sharding.axis)] = sharding.outer * DimExpr(sharding.RowSize() / ranks);
  }
  return dims;
}

bool Divides(const Sharding& sharding, const Shape& dims, std::int64_t ranks) {
  if (!sharding.IsSplit()) return true;
  return sharding.axis >= 0 && static_cast<std::size_t>(sharding.axis) < dims.size() &&
         AllDivide(sharding.segments, ranks) &&
         dims[static_cast<std::size_t>(sharding.axis)] == sharding.outer * DimExpr(sharding.RowSize());
}

std::optional<Sharding> ReshapeOf(const Sharding& sharding, const Shape& from, const Shape& to,
                                  std::int64_t ranks) {
  if (!sharding.IsSplit()) return sharding;
  const auto axis = static_cast<std::size_t>(sharding.axis);
  // All elements in their order are rows of segments. Which axis of `to` has whole steps of these?
  const DimExpr rows = ProductOfRange(from, 0, axis) * sharding.outer;
  const DimExpr behind = ProductOfRange(from, axis + 1, from.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::optional<DimExpr> outer = Quotient(rows, ProductOfRange(to, 0, i));
    if (!outer) continue;
    const DimExpr step = ProductOfRange(to, i + 1, to.size());
    std::vector<std::int64_t> segments;
    for (const std::int64_t segment : sharding.segments) {
      const std::optional<DimExpr> steps = Quotient(behind * DimExpr(segment), step);
      if (!steps || !steps->IsConstant()) break;
      segments.push_back(*steps->constant());
    }
    if (segments.size() != sharding.segments.size()) continue;
    Sharding split = Sharding::Split(static_cast<int>(i), *outer, std::move(segments));
    if (Divides(split, to, ranks)) return split;
  }
  return std::nullopt;
}

}  // namespace rewire::compiler
