// SPDX-License-Identifier: Apache-2.0
// The sliding window that convolution and pooling share: attributes and geometry of the two spatial axes of
// NCHW.
#pragma once

#include <cstdint>

#include "kernels/cpu/checks.h"
#include "vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

// One spatial axis. Output position o covers input positions o * stride - before + i * dilation for i <
// kernel.
struct WindowAxis {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0;
  std::int64_t after = 0;

  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }

  // The range of i for which position o's window lies inside [0, size).
  void Inside(std::int64_t o, std::int64_t size, std::int64_t* first, std::int64_t* last) const {
    const std::int64_t start = o * stride - before;
    *first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    *last = start >= size ? 0 : std::min(kernel, (size - 1 - start) / dilation + 1);
  }
};

// What a factory reads: strides, dilations, pads (top, left, bottom, right), auto_pad.
struct WindowAttributes {
  std::int64_t kernel[2] = {1, 1};
  std::int64_t strides[2] = {1, 1};
  std::int64_t dilations[2] = {1, 1};
  std::int64_t pads[4] = {0, 0, 0, 0};
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;

  // The kernel's size is an attribute of pooling; for convolution the weights have it.
  void Read(Attributes& attributes, bool kernel_shape, bool ceil);
  // The message of a value that Read could not take; to be returned by Make.
  Status Check() const;

  // The two axes for an input of height x width, with auto_pad resolved, and the output's size.
  Status Resolve(const std::int64_t (&input)[2], WindowAxis (&axes)[2], std::int64_t (&output)[2]) const;
};

}  // namespace rewire::kernel::cpu
