// SPDX-License-Identifier: Apache-2.0
//
// The window that convolutions and pools slide over the spatial axes of an image: its attributes, and the
// sizes that follow from them. Kernels of every kind, the compiler and the C source that it writes read them
// here. The sizes are those of ONNX's operators Conv, ConvTranspose and MaxPool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace rewire::contract {

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };
// The values of the attribute auto_pad, in the order of AutoPad.
inline constexpr std::string_view kAutoPads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
// Whether as many windows are taken as strides fit in the image.
constexpr bool IsSame(AutoPad auto_pad) {
  return auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
}

// How a window moves along one axis, and the elements of padding before the image and behind it.
struct WindowStep {
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0;
  std::int64_t after = 0;
};

// The attributes of a window. An empty list means ones, for pads zeros.
struct WindowAttributes {
  // No number of an attribute is larger, so that their products do not overflow.
  static constexpr std::int64_t kMost = std::int64_t{1} << 30;

  // `pads` has the pads before each axis, then those behind each.
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;

  // `Given` reads attributes by Require, Ints, Choice and Bool, as kernel::Attributes does. The window's size
  // is an attribute of pooling (`kernel_shape`); a convolution's weights have it.
  template <typename Given>
  void Read(Given& given, bool kernel_shape, bool ceil) {
    if (kernel_shape) {
      given.Require("kernel_shape");
      kernel = given.Ints("kernel_shape", {});
    }
    strides = given.Ints("strides", {});
    dilations = given.Ints("dilations", {});
    pads = given.Ints("pads", {});
    const auto& texts = kAutoPads;
    auto_pad = static_cast<AutoPad>(given.Choice("auto_pad", {texts[0], texts[1], texts[2], texts[3]}, 0));
    if (ceil) ceil_mode = given.Bool("ceil_mode", false);
  }

  struct List {
    const char* name;
    const std::vector<std::int64_t>& values;
    std::size_t count;   // if there are values
    std::int64_t least;  // that a value may be
  };
  // Calls body(List) for each list but the window's size.
  template <typename Body>
  void ForEachList(std::size_t spatial, const Body& body) const {
    body(List{"strides", strides, spatial, 1});
    body(List{"dilations", dilations, spatial, 1});
    body(List{"pads", pads, 2 * spatial, 0});
  }
  // Whether each list is empty or has what `spatial` axes need.
  bool FitsAxes(std::size_t spatial) const {
    bool fits = true;
    ForEachList(spatial, [&](const List& list) {
      if (!list.values.empty() && list.values.size() != list.count) fits = false;
    });
    return fits;
  }

  // Returns the step along spatial axis i of `spatial`, which the lists fit. SetSamePads pads for auto_pad.
  WindowStep Step(std::size_t i, std::size_t spatial) const {
    WindowStep step;
    if (!strides.empty()) step.stride = strides[i];
    if (!dilations.empty()) step.dilation = dilations[i];
    if (!pads.empty() && auto_pad == AutoPad::kNotSet) {
      step.before = pads[i];
      step.after = pads[i + spatial];
    }
    return step;
  }
};

// A number as the rules below take it. Sums and products stay at kMost at most.
struct WindowSize {
  static constexpr std::int64_t kMost = std::int64_t{1} << 56;

  std::int64_t value = 0;

  constexpr explicit WindowSize(std::int64_t size) : value(size) {}
  constexpr WindowSize operator+(WindowSize other) const {
    std::int64_t sum = 0;
    const bool overflows = __builtin_add_overflow(value, other.value, &sum);
    return WindowSize(overflows ? kMost : std::min(sum, kMost));
  }
  constexpr WindowSize operator-(WindowSize other) const { return WindowSize(value - other.value); }
  constexpr WindowSize operator*(WindowSize other) const {
    std::int64_t product = 0;
    const bool overflows = __builtin_mul_overflow(value, other.value, &product);
    return WindowSize(overflows ? kMost : std::min(product, kMost));
  }
  // Both divide numbers that are not below 0.
  static constexpr WindowSize FloorDiv(WindowSize a, WindowSize b) { return WindowSize(a.value / b.value); }
  static constexpr WindowSize CeilDiv(WindowSize a, WindowSize b) {
    return WindowSize((a.value + b.value - 1) / b.value);
  }
};

// The rules of sizes along one axis. `Size` is WindowSize or an expression that the same can be done with.

// The elements from the first to the last that a window covers.
template <typename Size>
Size WindowReach(const Size& kernel, const WindowStep& step) {
  return (kernel - Size(1)) * Size(step.dilation) + Size(1);
}
// How far the window can move over the image with its pads. Below 0: not one fits.
template <typename Size>
Size WindowRoom(const Size& input, const Size& kernel, const WindowStep& step) {
  return input + Size(step.before + step.after) - WindowReach(kernel, step);
}
// The windows of so much room.
template <typename Size>
Size WindowsWithin(const Size& room, const WindowStep& step) {
  return Size::FloorDiv(room, Size(step.stride)) + Size(1);
}
// The windows over the image where auto_pad is SAME_UPPER or SAME_LOWER.
template <typename Size>
Size WindowsOfSame(const Size& input, const WindowStep& step) {
  return Size::CeilDiv(input, Size(step.stride));
}
// The elements that so many windows cover: the output of a transposed convolution, with its pads.
template <typename Size>
Size CoveredBy(const Size& windows, const Size& kernel, const WindowStep& step) {
  return (windows - Size(1)) * Size(step.stride) + WindowReach(kernel, step);
}

// Splits what the windows cover beyond the image into the pads of auto_pad. SAME_UPPER has the larger part
// behind the image.
inline void SetSamePads(AutoPad auto_pad, std::int64_t covered, std::int64_t input, WindowStep* step) {
  const std::int64_t total = std::max<std::int64_t>(0, covered - input);
  step->before = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
  step->after = total - step->before;
}

}  // namespace rewire::contract
