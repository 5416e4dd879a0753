// SPDX-License-Identifier: Apache-2.0
//
// Names of the shape functions.
#pragma once

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
