// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/window_arguments.h"

namespace rewire::kernel::device {

Status CheckWindow(const cpu::Window& window) {
  constexpr std::int64_t kMost = 1 << 30;
  for (const cpu::WindowAxis& axis : window.axes) {
    if (axis.reach() > kMost || axis.stride > kMost || axis.before > kMost || axis.after > kMost ||
        axis.dilation > kMost || cpu::Times(axis.output, axis.stride) > kMost) {
      return ValueError("a window, stride or pad is larger than a device can count");
    }
  }
  return Status();
}

WindowArguments WindowArgumentsOf(const cpu::Window& window) {
  WindowArguments arguments{};
  for (int i = 0; i < cpu::kMaxSpatial; ++i) {
    const cpu::WindowAxis& axis = window.axes[i];
    arguments.size[i] = static_cast<int>(axis.kernel);
    arguments.stride[i] = static_cast<int>(axis.stride);
    arguments.dilation[i] = static_cast<int>(axis.dilation);
    arguments.before[i] = static_cast<int>(axis.before);
    arguments.after[i] = static_cast<int>(axis.after);
    arguments.input[i] = static_cast<int>(axis.input);
    arguments.output[i] = static_cast<int>(axis.output);
  }
  return arguments;
}

WindowArguments ConvolutionArguments(const cpu::Window& window, ShapeView x, ShapeView w,
                                     std::int64_t groups) {
  WindowArguments arguments = WindowArgumentsOf(window);
  arguments.batch = static_cast<int>(x[0]);
  arguments.groups = static_cast<int>(groups);
  arguments.channels = static_cast<int>(w[1]);
  arguments.out_channels = static_cast<int>(w[0] / groups);
  return arguments;
}

}  // namespace rewire::kernel::device
