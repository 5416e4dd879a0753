// SPDX-License-Identifier: Apache-2.0
//
// ONNX Resize: which input positions and weights make up an output position.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
  kSymmetric,
  kTfHalfPixel,
};
// The values of the attribute keep_aspect_ratio_policy.
inline const std::initializer_list<std::string_view> kResizePolicies = {"stretch", "not_larger",
                                                                        "not_smaller"};

enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil };

struct ResizeAttributes {
  Interpolation mode = Interpolation::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic_a = -0.75;
  double outside = 0;  // tf_crop_and_resize: the value outside the image
  bool exclude_outside = false;
  bool antialias = false;
  bool rounds = false;  // sizes by scales are rounded to the nearest, otherwise down
  std::vector<std::int64_t> axes;

  void Read(Attributes& attributes);
};

// The taps of one output position along one axis: weights[i] for input position first + i. Positions beyond
// an end use the element at that end.
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
  // The most taps of a position.
  std::int64_t MostTaps(const ResizeAttributes& attributes) const;
  // The most weights for all positions, whatever the scale.
  static std::int64_t MostWeights(const ResizeAttributes& attributes, std::int64_t input,
                                  std::int64_t output);
  // Computes the taps of output position o with their weights. They are incomplete if the Pace says stop.
  Taps At(const ResizeAttributes& attributes, std::int64_t o, double* weights, Pace& pace) const;

 private:
  double SourceOf(const ResizeAttributes& attributes, std::int64_t o) const;
};

// scales[i], of f32 or f64.
double ScaleAt(TensorView scales, std::int64_t i);

// The axes of x after resizing by scales or by sizes, of all axes or of those of the attribute.
Status ResizedByScales(const ResizeAttributes& attributes, ShapeView x, TensorView scales, Dims* result);

}  // namespace rewire::kernel::cpu
