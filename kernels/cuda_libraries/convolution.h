// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by cuDNN.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cuda_libraries {

// y [N, M, ...] = x [N, C, ...] with w [M, C / groups, ...], of two or three spatial axes. Pads are the same
// on both sides.
struct Convolution {
  static constexpr int kMostSpatial = 3;
  std::int32_t spatial = 0;
  std::int32_t groups = 1;
  std::int32_t x[2 + kMostSpatial] = {}, w[2 + kMostSpatial] = {}, y[2 + kMostSpatial] = {};
  std::int32_t pads[kMostSpatial] = {}, strides[kMostSpatial] = {}, dilations[kMostSpatial] = {};

  bool operator==(const Convolution&) const = default;
};

// All tensors are f32 or all f16, on one CUDA device, dense and checked; bias [M]. *done stays false if cuDNN
// is not there or does not take the convolution. Then nothing was given to the stream.
Status Convolve(const Convolution& convolution, TensorView x, TensorView w,
                const std::optional<TensorView>& bias, TensorView y, bool* done);

}  // namespace rewire::kernel::cuda_libraries
