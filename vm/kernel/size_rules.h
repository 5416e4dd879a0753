// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/size_rules.h>.
//
// Rules of sizes that hold when a model is compiled as when it runs. They are the codes of a program of
// rewire.shape.eval (docs/kernels.md), the size that two sizes broadcast to, and what a slice takes. The
// compiler, the kernels and the bounds of memory read them here.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rewire {

struct SizeCodes {
  enum Code : std::int64_t {
    kPush,  // operand: a number
    kDim,   // operands: a shape and an axis
    kAdd,
    kMultiply,
    kFloorDivide,  // towards minus infinity; x / 0 is 0
    kMaximum,
    kMinimum,
    kStore,
    kBroadcast,  // BroadcastSize
  };
};

// The size of an axis that has size `a` in one tensor and `b` in another: numpy's rule. A size of 1 becomes
// the other one, also 0. Sizes that differ and are not 1 do not broadcast; the caller refuses them.
inline constexpr std::int64_t BroadcastSize(std::int64_t a, std::int64_t b) { return a == 1 ? b : a; }

// The part of one axis that a slice takes: element `first`, and `count` elements in all, each `step` behind
// the one before.
struct SlicedAxis {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

// ONNX's Slice. Positions below 0 count from the end. Then a start is held to the elements of the axis, where
// 0 to size are allowed for a positive step, and an end to -1 to size. `step` is not 0.
inline SlicedAxis SliceAxis(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (size == 0) return {};
  // A longer step than the axis takes one element at most, as one of the axis' length does.
  step = std::clamp(step, -size, size);
  const auto from_front = [size](std::int64_t position) { return position < 0 ? position + size : position; };
  const bool forward = step > 0;
  const std::int64_t first = std::clamp<std::int64_t>(from_front(start), 0, forward ? size : size - 1);
  const std::int64_t last =
      std::clamp<std::int64_t>(from_front(end), forward ? 0 : -1, forward ? size : size - 1);
  const std::int64_t distance = forward ? last - first : first - last, stride = forward ? step : -step;
  return {first, step, distance <= 0 ? 0 : (distance + stride - 1) / stride};
}

}  // namespace rewire
