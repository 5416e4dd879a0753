// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels on images and boxes, and the shapes of what they give.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/contract/shape.h"

namespace rewire::names {

// Resizing.
inline constexpr char kResize[] = "rewire.resize";
inline constexpr char kShapeResize[] = "rewire.shape.resize";
inline constexpr char kShapeResizeSizes[] = "rewire.shape.resize_sizes";

// Non-maximum suppression.
inline constexpr char kNms[] = "rewire.nms";
inline constexpr char kShapeNms[] = "rewire.shape.nms";

// Sampling at positions.
inline constexpr char kGridSample[] = "rewire.grid_sample";
inline constexpr char kShapeGridSample[] = "rewire.shape.grid_sample";
inline constexpr char kAffineGrid[] = "rewire.affine_grid";

// Regions.
inline constexpr char kRoiAlign[] = "rewire.roi_align";
inline constexpr char kShapeRoiAlign[] = "rewire.shape.roi_align";
inline constexpr char kMaxRoiPool[] = "rewire.max_roi_pool";

}  // namespace rewire::names

namespace rewire::contract {

// The shape of x with other sizes along the axes that are named, or along all: size(i, axis) for the axis
// that is named in place i.
auto ResizedSizes(const auto& x, const auto& axes, const auto& size, auto* result, const auto& error)
    -> decltype(error("")) {
  for (std::size_t i = 0; i < x.size(); ++i) result->push_back(x[i]);
  for (std::size_t i = 0; i < (axes.empty() ? x.size() : axes.size()); ++i) {
    std::size_t axis = i;
    if (auto fits =
            NormalizeAxis(axes.empty() ? static_cast<std::int64_t>(i) : axes[i], x.size(), &axis, error);
        !fits)
      return fits;
    (*result)[axis] = size(i, axis);
  }
  return {};
}

inline constexpr std::size_t kMostSampledAxes = 3;

// x [N, C, D...] at the positions of a grid [N, O..., axes], the first axis' coordinate last: [N, C, O...].
auto SampledSizes(const auto& x, const auto& grid, auto* result, const auto& error) -> decltype(error("")) {
  if (x.size() < 3 || x.size() > 2 + kMostSampledAxes) {
    return error("x has shape ", x, ", expected [N, C, ...] with 1 to ", kMostSampledAxes, " spatial axes");
  }
  const auto axes = static_cast<std::int64_t>(x.size() - 2);
  if (grid.size() != x.size() || Differ(grid[0], x[0]) || Differ(grid[grid.size() - 1], axes))
    return error("grid has shape ", grid, ", expected [", x[0], ", ..., ", axes, "] of the rank of x ", x);
  result->push_back(x[0]);
  result->push_back(x[1]);
  for (std::size_t i = 1; i + 1 < grid.size(); ++i) result->push_back(grid[i]);
  return {};
}

// Regions of x [N, C, H, W], each of which becomes an image of one size.
auto RegionSizes(const auto& x, const auto& rois, std::int64_t height, std::int64_t width, auto* result,
                 const auto& error) -> decltype(error("")) {
  if (x.size() != 4 || rois.size() != 2)
    return error("x has shape ", x, " and rois ", rois, ", expected rank 4 and 2");
  result->push_back(rois[0]);
  result->push_back(x[1]);
  result->push_back(height);
  result->push_back(width);
  return {};
}

}  // namespace rewire::contract
