// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/window.h"

namespace rewire::kernel::cpu {
namespace {

// Sizes, pads and strides stay far below what their products could overflow at.
constexpr std::int64_t kMost = std::int64_t{1} << 30;

Status CheckValues(const char* name, const std::vector<std::int64_t>& values, std::int64_t least) {
  for (std::int64_t value : values) {
    if (value < least || value > kMost) {
      return ValueError("attribute '", name, "' is ", ShapeView(values.data(), values.size()),
                        ", expected ints of at least ", least);
    }
  }
  return Status();
}

Status CheckCount(const char* name, const std::vector<std::int64_t>& values, int expected) {
  if (values.empty() || values.size() == static_cast<std::size_t>(expected)) return Status();
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

void WindowAttributes::Read(Attributes& attributes, bool kernel_shape, bool ceil) {
  if (kernel_shape) {
    attributes.Require("kernel_shape");
    kernel = attributes.Ints("kernel_shape", {});
  }
  strides = attributes.Ints("strides", {});
  dilations = attributes.Ints("dilations", {});
  pads = attributes.Ints("pads", {});
  auto_pad =
      static_cast<AutoPad>(attributes.Choice("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, 0));
  if (ceil) ceil_mode = attributes.Bool("ceil_mode", false);
}

Status WindowAttributes::Check() const {
  if (Status s = CheckValues("kernel_shape", kernel, 1); !s.ok()) return s;
  if (Status s = CheckValues("strides", strides, 1); !s.ok()) return s;
  if (Status s = CheckValues("dilations", dilations, 1); !s.ok()) return s;
  return CheckValues("pads", pads, 0);
}

Status WindowAttributes::CheckCounts(int spatial) const {
  if (Status s = CheckCount("strides", strides, spatial); !s.ok()) return s;
  if (Status s = CheckCount("dilations", dilations, spatial); !s.ok()) return s;
  return CheckCount("pads", pads, 2 * spatial);
}

WindowAxis WindowAttributes::Axis(int i, int spatial) const {
  const auto at = static_cast<std::size_t>(i);
  WindowAxis axis;
  if (!strides.empty()) axis.stride = strides[at];
  if (!dilations.empty()) axis.dilation = dilations[at];
  if (!pads.empty() && auto_pad == AutoPad::kNotSet) {
    axis.before = pads[at];
    axis.after = pads[at + static_cast<std::size_t>(spatial)];
  }
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
    if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) {
      axis.output = (axis.input + axis.stride - 1) / axis.stride;
      const std::int64_t total =
          std::max<std::int64_t>(0, (axis.output - 1) * axis.stride + axis.reach() - axis.input);
      axis.before = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      axis.after = total - axis.before;
    } else {
      const std::int64_t room = axis.input + axis.before + axis.after - axis.reach();
      // Rounded up, a window may cover more than there is, and less than none are not left.
      if (room < 0 && !(ceil_mode && room > -2 * axis.stride)) {
        return ValueError("the window covers ", axis.reach(), " along axis ", 2 + i, ", x has only ",
                          axis.input + axis.before + axis.after, " there with its pads");
      }
      axis.output = room < 0 ? (room > -axis.stride ? 1 : 0)
                             : (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
      // A window that would begin in the padding behind the input is left out.
      if (ceil_mode && (axis.output - 1) * axis.stride >= axis.input + axis.before) --axis.output;
    }
    window->axes[kMaxSpatial - spatial + i] = axis;
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
