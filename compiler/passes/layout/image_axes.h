// SPDX-License-Identifier: Apache-2.0
//
// The axes of images [N, C, spatial...] and of the same with the channels last.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

using Ints = std::vector<std::int64_t>;

// The permutations between the layouts of images with `rank` axes.
inline Ints ToLast(int rank) {
  Ints perm = {0};
  for (std::int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return perm;
}
inline Ints ToFirst(int rank) {
  Ints perm = {0, rank - 1};
  for (std::int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return perm;
}

inline Shape Permuted(const Shape& dims, const Ints& perm) {
  Shape permuted;
  for (const std::int64_t axis : perm) permuted.push_back(dims[static_cast<std::size_t>(axis)]);
  return permuted;
}

// True if a transpose moves axes of size 1 alone past others.
inline bool OrderStays(const Shape& dims, const Ints& perm) {
  std::int64_t last = -1;
  for (const std::int64_t axis : perm) {
    if (dims[static_cast<std::size_t>(axis)].Is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// One to three spatial axes.
inline bool IsImage(const Value* value) {
  return value->type.IsTensor() && value->type.ranked && value->type.rank() >= 3 && value->type.rank() <= 5;
}

inline Ints ToLast(const Value* value) { return ToLast(value->type.rank()); }
inline Ints ToFirst(const Value* value) { return ToFirst(value->type.rank()); }

// A constant image with its channels last.
inline void MoveConstant(const Value& value, Value* last) {
  const HostTensor& from = *value.constant;
  if (value.at_load) {
    std::vector<std::int64_t> dims;
    for (const std::int64_t axis : ToLast(&value)) dims.push_back(from.shape[static_cast<std::size_t>(axis)]);
    BecomeAtLoad(last, from.dtype, std::move(dims));
    return;
  }
  const std::size_t size = ElementBytes(from.dtype);
  const std::int64_t channels = from.shape[1];
  const std::int64_t plane = std::accumulate(from.shape.begin() + 2, from.shape.end(), std::int64_t{1},
                                             [](std::int64_t a, std::int64_t b) { return a * b; });
  std::vector<std::byte> bytes(from.bytes.view.size());
  for (std::int64_t i = 0; i < from.shape[0] * channels * plane; ++i) {
    const std::int64_t to = (i / (channels * plane) * plane + i % plane) * channels + i / plane % channels;
    std::copy_n(from.bytes.view.data() + static_cast<std::size_t>(i) * size, size,
                bytes.data() + static_cast<std::size_t>(to) * size);
  }
  HostTensor moved;
  moved.dtype = from.dtype;
  for (const std::int64_t axis : ToLast(&value))
    moved.shape.push_back(from.shape[static_cast<std::size_t>(axis)]);
  moved.bytes = CopyBytes({bytes.data(), bytes.size()});
  last->constant = std::move(moved);
}

// The place of an axis with the channels last.
inline std::int64_t AxisOfLast(std::int64_t axis, std::int64_t rank) {
  if (axis < 0) axis += rank;
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

}  // namespace rewire::compiler
