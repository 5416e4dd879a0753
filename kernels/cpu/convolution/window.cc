// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/window.h"

namespace rewire::kernel::cpu {
namespace {

constexpr std::int64_t kMost = contract::WindowAttributes::kMost;

Status CheckValues(const char* name, const std::vector<std::int64_t>& values, std::int64_t least) {
  for (std::int64_t value : values) {
    if (value < least || value > kMost) {
      return ValueError("attribute '", name, "' is ", ShapeView(values.data(), values.size()),
                        ", expected ints from ", least, " to ", kMost);
    }
  }
  return Status();
}

Status CheckCount(const char* name, const std::vector<std::int64_t>& values, std::size_t expected) {
  if (values.empty() || values.size() == expected) return Status();
  return ValueError("attribute '", name, "' is ", ShapeView(values.data(), values.size()), ", expected ",
                    expected, " ints");
}

}  // namespace

Dims Window::OutputDims(std::int64_t n, std::int64_t c) const {
  Dims dims;
  dims.push_back(n);
  dims.push_back(c);
  for (int i = kMaxSpatial - rank; i < kMaxSpatial; ++i) dims.push_back(axes[i].output);
  return dims;
}

Status WindowAttributes::Check() const {
  Status checked = CheckValues("kernel_shape", kernel, 1);
  ForEachList(0, [&](const List& list) {
    if (checked.ok()) checked = CheckValues(list.name, list.values, list.least);
  });
  return checked;
}

Status WindowAttributes::CheckCounts(int spatial) const {
  Status checked;
  ForEachList(static_cast<std::size_t>(spatial), [&](const List& list) {
    if (checked.ok()) checked = CheckCount(list.name, list.values, list.count);
  });
  return checked;
}

WindowAxis WindowAttributes::Axis(int i, int spatial) const {
  WindowAxis axis;
  static_cast<contract::WindowStep&>(axis) =
      Step(static_cast<std::size_t>(i), static_cast<std::size_t>(spatial));
  return axis;
}

Status WindowAttributes::Resolve(ShapeView x, ShapeView kernel_shape, Window* window) const {
  const int spatial = static_cast<int>(x.size()) - 2;
  if (spatial < 1 || spatial > kMaxSpatial) {
    return ValueError("x has shape ", x, ", expected [N, C, ...] with 1 to ", kMaxSpatial, " spatial axes");
  }
  if (kernel_shape.size() != static_cast<std::size_t>(spatial)) {
    return ValueError("the kernel has shape ", kernel_shape, ", expected ", spatial, " axes as x of shape ",
                      x);
  }
  if (Status s = CheckCounts(spatial); !s.ok()) return s;
  *window = Window();
  window->rank = spatial;
  for (int i = 0; i < spatial; ++i) {
    WindowAxis axis = Axis(i, spatial);
    axis.kernel = kernel_shape[static_cast<std::size_t>(i)];
    axis.input = x[static_cast<std::size_t>(i) + 2];
    if (axis.kernel < 1 || axis.kernel > kMost || axis.reach() > kMost)
      return ValueError("the kernel has shape ", kernel_shape, ", expected 1 to ", kMost, " along each axis");
    if (contract::IsSame(auto_pad)) {
      axis.output = contract::WindowsOfSame(WindowSize(axis.input), axis).value;
      contract::SetSamePads(auto_pad, axis.covered(), axis.input, &axis);
    } else {
      const std::int64_t room =
          contract::WindowRoom(WindowSize(axis.input), WindowSize(axis.kernel), axis).value;
      // Rounded up, a window may cover more than there is, and less than none are not left.
      if (room < 0 && !(ceil_mode && room > -2 * axis.stride)) {
        return ValueError("the window covers ", axis.reach(), " along axis ", 2 + i, ", x has only ",
                          axis.input + axis.before + axis.after, " there with its pads");
      }
      const WindowSize taken(room + (ceil_mode ? axis.stride - 1 : 0));
      axis.output = room < 0 ? (room > -axis.stride ? 1 : 0) : contract::WindowsWithin(taken, axis).value;
      // A window that would begin in the padding behind the input is left out.
      if (ceil_mode && (axis.output - 1) * axis.stride >= axis.input + axis.before) --axis.output;
    }
    window->axes[kMaxSpatial - spatial + i] = axis;
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
