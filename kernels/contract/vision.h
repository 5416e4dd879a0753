// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels on images and boxes.
#pragma once

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
