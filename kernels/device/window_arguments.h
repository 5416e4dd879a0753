// SPDX-License-Identifier: Apache-2.0
//
// Windows over images as device code takes them.
#pragma once

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {

using WindowArguments = ::Window;

// Positions are computed in 32 bits.
Status CheckWindow(const cpu::Window& window);

WindowArguments WindowArgumentsOf(const cpu::Window& window);
// ConvolutionArguments are for x [N, C, ...] and w [M, C / groups, ...].
WindowArguments ConvolutionArguments(const cpu::Window& window, ShapeView x, ShapeView w,
                                     std::int64_t groups);

}  // namespace rewire::kernel::device
