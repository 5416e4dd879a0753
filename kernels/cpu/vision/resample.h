// SPDX-License-Identifier: Apache-2.0
//
// The scales of ONNX Resize, as kernels of the CPU and of devices read them. Positions and weights stand in
// kernels/contract/resize.h.
#pragma once

#include <cstdint>

#include "rewire/kernels/contract/resize.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

using contract::Coordinates;
using contract::Interpolation;
using contract::kResizePolicies;
using contract::ResizeAttributes;
using contract::ResizeAxis;
using contract::Taps;

// The most weights of all positions of an axis, whatever its scale.
std::int64_t MostResizeWeights(const ResizeAttributes& attributes, std::int64_t input, std::int64_t output);

// scales[i], of f32 or f64.
double ScaleAt(TensorView scales, std::int64_t i);

// The axes of x after resizing by scales or by sizes, of all axes or of those of the attribute.
Status ResizedByScales(const ResizeAttributes& attributes, ShapeView x, TensorView scales, Dims* result);

}  // namespace rewire::kernel::cpu
