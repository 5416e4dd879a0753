// SPDX-License-Identifier: Apache-2.0
//
// A convolution in Winograd's form, group by group. A group is some tiles of some output planes. The input
// planes that it reads are transformed, multiplied point by point, and transformed back. Images have one
// plane. With planes, an output plane sums the products of all input planes under its window, so that each
// input plane of a group is transformed once.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

struct WinogradCall {
  const WindowAxis *depth, *rows, *columns;
  std::int64_t in_channels, out_channels;
  const float *x, *w, *bias, *addend;
  float* out;
  Activation activation;
  std::int64_t tile_rows, tile_columns, tiles;  // the last: of all images
  std::int64_t group, planes;                   // the most tiles and output planes of a group
  float *inputs, *products;                     // [points, planes, tiles, channels], with gaps
  std::int64_t input_step, product_step;        // from a point to the next
  const float* zeros;                           // [in_channels]

  std::int64_t chunks() const;  // of planes
};

struct WinogradGroup {
  std::int64_t first, count;         // tiles
  std::int64_t first_plane, planes;  // of the output
  std::int64_t first_slice, slices;  // planes of the input
};

// How many tiles lie along an axis. With a dilation, for as many images as there are outputs of different
// remainders.
std::int64_t WinogradTilesAlong(std::int64_t outputs, std::int64_t dilation);

// The input planes that so many output planes read at most.
std::int64_t WinogradSlices(const WindowAxis& depth, std::int64_t planes);

// Group `number` of those with `tiles` tiles: one for each chunk of planes, and then the next tiles.
WinogradGroup WinogradGroupOf(const WinogradCall& call, std::int64_t tiles, std::int64_t number);

// Transforms tiles [begin, end) of the group's slices * count.
void TransformTiles(const WinogradCall& call, const WinogradGroup& group, std::int64_t begin,
                    std::int64_t end, Pace& pace);
// Multiplies at points [begin, end).
void MultiplyPoints(const WinogradCall& call, const WinogradGroup& group, std::int64_t begin,
                    std::int64_t end, Pace& pace);
// Transforms tiles [begin, end) of the group's planes * count back.
void FinishTiles(const WinogradCall& call, const WinogradGroup& group, std::int64_t begin, std::int64_t end,
                 Pace& pace);

}  // namespace rewire::kernel::cpu
