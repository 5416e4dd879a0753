// SPDX-License-Identifier: Apache-2.0
//
// Names of the shape functions, and what the rules of shapes share.
//
// A rule is a template in the file of its family that gives the shape of an operator's result. Kernels check
// shapes by it, shape functions and the compiler compute them. Sizes are numbers, or expressions of the
// compiler, which has the functions on sizes below for its own type (compiler/ir/shape_rules.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rewire/kernels/contract/window.h"
#include "rewire/vm/kernel/size_rules.h"

namespace rewire::names {

// Shape functions of moves.
inline constexpr char kShapeSqueeze[] = "rewire.shape.squeeze";
inline constexpr char kShapeUnsqueeze[] = "rewire.shape.unsqueeze";
inline constexpr char kShapeTile[] = "rewire.shape.tile";
inline constexpr char kShapeSplit[] = "rewire.shape.split";

// Shape functions.
inline constexpr char kShapeBroadcast[] = "rewire.shape.broadcast";
inline constexpr char kShapeMatMul[] = "rewire.shape.matmul";
inline constexpr char kShapeDense[] = "rewire.shape.dense";
inline constexpr char kShapeConv[] = "rewire.shape.conv";
inline constexpr char kShapePool[] = "rewire.shape.pool";
inline constexpr char kShapeConcat[] = "rewire.shape.concat";
inline constexpr char kShapeReduce[] = "rewire.shape.reduce";
inline constexpr char kShapeSame[] = "rewire.shape.same";
inline constexpr char kShapeReshape[] = "rewire.shape.reshape";
inline constexpr char kShapeTranspose[] = "rewire.shape.transpose";
inline constexpr char kShapeSlice[] = "rewire.shape.slice";
inline constexpr char kShapeGather[] = "rewire.shape.gather";
inline constexpr char kShapePad[] = "rewire.shape.pad";
inline constexpr char kShapeArange[] = "rewire.shape.arange";
inline constexpr char kShapeBytes[] = "rewire.shape.bytes";

// Shape programs.
inline constexpr char kShapeEval[] = "rewire.shape.eval";
inline constexpr char kShapeSizes[] = "rewire.shape.sizes";
inline constexpr char kShapeLayout[] = "rewire.shape.layout";

}  // namespace rewire::names

namespace rewire::contract {

// Sums and products of sizes of at least 0 end at WindowSize::kMost, which no tensor has.
constexpr std::int64_t Plus(std::int64_t a, std::int64_t b) { return (WindowSize(a) + WindowSize(b)).value; }
constexpr std::int64_t Times(std::int64_t a, std::int64_t b) { return (WindowSize(a) * WindowSize(b)).value; }

// Whether it is at least 0, and no sum or product that ended.
constexpr bool IsSize(std::int64_t size) { return size >= 0 && size < WindowSize::kMost; }
// Whether no run gives both the same size.
constexpr bool Differ(std::int64_t a, std::int64_t b) { return a != b; }
constexpr bool Is(std::int64_t size, std::int64_t number) { return size == number; }
constexpr bool CanBeOne(std::int64_t size) { return size == 1; }
// Returns the one of two equal sizes that says more.
constexpr std::int64_t KnownOf(std::int64_t a, std::int64_t /*b*/) { return a; }

// A rule calls `error(parts...)` where shapes do not fit, with texts, numbers, sizes and shapes, and returns
// what that returns. Otherwise it returns a default value of this type, and has appended sizes to `result`,
// which is empty before.

// Maps an axis in [-rank, rank) to [0, rank).
template <typename Int>
auto NormalizeAxis(std::int64_t axis, Int rank, Int* normalized, const auto& error) -> decltype(error("")) {
  const auto axes = static_cast<std::int64_t>(rank);
  if (axis < -axes || axis >= axes)
    return error("axis is ", axis, ", expected at least ", -axes, " and less than ", axes);
  *normalized = static_cast<Int>(axis < 0 ? axis + axes : axis);
  return {};
}

// Marks axes of a shape, each of which may be named once.
auto MarkAxes(const auto& axes, std::size_t rank, auto* marked, const auto& error) -> decltype(error("")) {
  for (const std::int64_t given : axes) {
    std::size_t axis = 0;
    if (auto fits = NormalizeAxis(given, rank, &axis, error); !fits) return fits;
    if ((*marked)[axis]) return error("axis ", axis, " is named twice");
    (*marked)[axis] = true;
  }
  return {};
}

// numpy's broadcasting. `result` is replaced, and may be one of the shapes.
template <typename Result>
auto BroadcastSizes(const auto& a, const auto& b, Result* result, const auto& error) -> decltype(error("")) {
  const std::size_t rank = std::max(a.size(), b.size());
  const std::size_t a_missing = rank - a.size(), b_missing = rank - b.size();
  Result sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i < a_missing || i < b_missing) {
      sizes.push_back(i < a_missing ? b[i] : a[i]);
      continue;
    }
    const auto &x = a[i - a_missing], &y = b[i - b_missing];
    if (!CanBeOne(x) && !CanBeOne(y) && Differ(x, y)) {
      return error("shapes ", a, " and ", b, " do not broadcast: ", x, " and ", y, " at axis ", i,
                   " of the result");
    }
    sizes.push_back(BroadcastSize(x, y));
  }
  *result = std::move(sizes);
  return {};
}

// Whether the one shape broadcasts to the other.
bool BroadcastsTo(const auto& from, const auto& to) {
  if (from.size() > to.size()) return false;
  const std::size_t missing = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!CanBeOne(from[i]) && Differ(from[i], to[missing + i])) return false;
  }
  return true;
}

}  // namespace rewire::contract
