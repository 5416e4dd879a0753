// SPDX-License-Identifier: Apache-2.0
//
// How a value lies on the ranks of a sharded program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/ir/dim_expr.h"

namespace rewire::compiler {

struct Sharding {
  enum class Kind : std::uint8_t {
    kWhole,    // each rank has all of it
    kSplit,    // each rank has its part along one axis
    kPartial,  // each rank has a term of the sum that the value is
  };

  Kind kind = Kind::kWhole;
  // kSplit. The axis is `outer` rows of the segments, one segment behind the other. A rank has an equal part
  // of each segment: rank 1 of 2 has of 2 rows of {4, 2} the elements 2, 3, 5, 8, 9 and 11. So the queries,
  // keys and values that one product makes side by side are split by heads.
  int axis = 0;
  DimExpr outer = 1;
  std::vector<std::int64_t> segments;

  static Sharding Whole() { return {}; }
  static Sharding Partial();
  // Equal segments become rows, so that equal splits compare equal.
  static Sharding Split(int axis, const DimExpr& outer, std::vector<std::int64_t> segments);
  // The axis of `size` as one segment.
  static Sharding Split(int axis, std::int64_t size) { return Split(axis, 1, {size}); }

  bool IsWhole() const { return kind == Kind::kWhole; }
  bool IsSplit() const { return kind == Kind::kSplit; }
  bool IsPartial() const { return kind == Kind::kPartial; }
  bool operator==(const Sharding& other) const;

  // The elements of one row.
  std::int64_t RowSize() const;
  // The same split along another axis.
  Sharding Along(int other) const;
  // True if the axis is one segment.
  bool IsPlain() const { return outer.Is(1) && segments.size() == 1; }
  // "whole", "partial", "axis 1", "axis 2 as 3 of 64".
  std::string Text() const;
};

// The dimensions of a rank's part of a value with these dimensions.
Shape PartDims(const Sharding& sharding, Shape dims, std::int64_t ranks);
// Whether a tensor of these dimensions can lie so: the axis has the size that the segments say, and the ranks
// divide each of them.
bool Divides(const Sharding& sharding, const Shape& dims, std::int64_t ranks);

// How the result of a reshape from `from` to `to` lies if its input is split. nullopt if the parts of the
// ranks are no reshape of each other.
std::optional<Sharding> ReshapeOf(const Sharding& sharding, const Shape& from, const Shape& to,
                                  std::int64_t ranks);

}  // namespace rewire::compiler
