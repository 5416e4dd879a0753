// SPDX-License-Identifier: Apache-2.0
//
// A part of a line of a depthwise convolution's output, with the channels last.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// Writes these outputs to `out`, or rounded to bf16 to `rounded` if that is not null. The image has
// call.out_channels channels, and call.w is [taps, channels]. Stops early when `pace` says so.
void ConvolveDepthwise(const ImageCall& call, const Activation& activation, const OfLine& of, float* out,
                       std::uint16_t* rounded, Pace& pace);

}  // namespace rewire::kernel::cpu
