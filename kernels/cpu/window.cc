// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/window.h"

#include <algorithm>

namespace rewire::kernel::cpu {
namespace {

// Sizes, pads and strides stay far below what their products could overflow at.
constexpr std::int64_t kMost = std::int64_t{1} << 30;

template <std::size_t kCount>
bool Take(Attributes& attributes, const char* name, std::int64_t (&to)[kCount]) {
  const std::vector<std::int64_t> given = attributes.Ints(name, std::vector<std::int64_t>(to, to + kCount));
  if (given.size() != kCount) return false;
  std::copy_n(given.begin(), kCount, to);
  return true;
}

}  // namespace

void WindowAttributes::Read(Attributes& attributes, bool kernel_shape, bool ceil) {
  const auto take = [&](const char* name, auto& to) {
    if (!Take(attributes, name, to)) to[0] = -1;  // Check refuses it
  };
  if (kernel_shape) {
    attributes.Require("kernel_shape");
    take("kernel_shape", kernel);
  }
  take("strides", strides);
  take("dilations", dilations);
  if (!Take(attributes, "pads", pads)) pads[0] = -1;
  auto_pad =
      static_cast<AutoPad>(attributes.Choice("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, 0));
  if (ceil) ceil_mode = attributes.Bool("ceil_mode", false);
}

Status WindowAttributes::Check() const {
  const auto positive = [](const std::int64_t(&values)[2]) {
    return values[0] >= 1 && values[0] <= kMost && values[1] >= 1 && values[1] <= kMost;
  };
  if (!positive(kernel)) return ValueError("attribute 'kernel_shape': expected two ints of at least 1");
  if (!positive(strides)) return ValueError("attribute 'strides': expected two ints of at least 1");
  if (!positive(dilations)) return ValueError("attribute 'dilations': expected two ints of at least 1");
  for (std::int64_t pad : pads) {
    if (pad < 0 || pad > kMost) {
      return ValueError("attribute 'pads': expected four ints of at least 0 (top, left, bottom, right)");
    }
  }
  return Status();
}

Status WindowAttributes::Resolve(const std::int64_t (&input)[2], WindowAxis (&axes)[2],
                                 std::int64_t (&output)[2]) const {
  for (int i = 0; i < 2; ++i) {
    WindowAxis& axis = axes[i];
    axis.kernel = kernel[i];
    axis.stride = strides[i];
    axis.dilation = dilations[i];
    const std::int64_t size = input[i];
    if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) {
      output[i] = (size + axis.stride - 1) / axis.stride;
      const std::int64_t total =
          std::max<std::int64_t>(0, (output[i] - 1) * axis.stride + axis.reach() - size);
      axis.before = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      axis.after = total - axis.before;
      continue;
    }
    axis.before = auto_pad == AutoPad::kValid ? 0 : pads[i];
    axis.after = auto_pad == AutoPad::kValid ? 0 : pads[2 + i];
    const std::int64_t room = size + axis.before + axis.after - axis.reach();
    if (room < 0) {
      return ValueError("the window covers ", axis.reach(), " along axis ", 2 + i, ", x has only ",
                        size + axis.before + axis.after, " there with its pads");
    }
    output[i] = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
    // A window that would begin in the padding behind the input is left out.
    if (ceil_mode && (output[i] - 1) * axis.stride >= size + axis.before) --output[i];
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
