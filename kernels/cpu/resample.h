// SPDX-License-Identifier: Apache-2.0
// ONNX Resize: where an output position lies in the input, and what it takes from there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/shapes.h"
#include "vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
  kSymmetric
};
enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil };

struct ResizeAttributes {
  Interpolation mode = Interpolation::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic_a = -0.75;
  double outside = 0;  // for tf_crop_and_resize: what lies outside the image
  bool exclude_outside = false;
  bool antialias = false;
  std::vector<std::int64_t> axes;

  void Read(Attributes& attributes);
};

// The taps that one output position along one axis takes: weights[i] of input position first + i, where
// positions beyond the ends stand for the ends.
struct Taps {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool outside = false;
};

// One axis of a resize.
struct ResizeAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  double scale = 1;      // output over input, as given
  double roi_begin = 0;  // of tf_crop_and_resize, in fractions of the input
  double roi_end = 1;

  bool IsIdentity(const ResizeAttributes& attributes) const {
    return input == output && scale == 1 && attributes.coordinates != Coordinates::kTfCropAndResize;
  }
  // At most as many taps as this.
  std::int64_t MostTaps(const ResizeAttributes& attributes) const;
  // At most as many weights as this for all positions, whatever the scale.
  static std::int64_t MostWeights(const ResizeAttributes& attributes, std::int64_t input,
                                  std::int64_t output);
  // The taps of output position o, with their weights.
  Taps At(const ResizeAttributes& attributes, std::int64_t o, double* weights) const;

 private:
  double SourceOf(const ResizeAttributes& attributes, std::int64_t o) const;
};

// What the axes of x become by scales or by sizes, of all axes or of those of the attribute.
Status ResizedByScales(const ResizeAttributes& attributes, ShapeView x, TensorView scales, Dims* result);

}  // namespace rewire::kernel::cpu
