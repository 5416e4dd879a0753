// SPDX-License-Identifier: Apache-2.0
//
// The spatial axes of a window as the embedded kernels take them, with auto_pad resolved.
#pragma once

#include <string>

#include "rewire/compiler/aot/embedded/call.h"

namespace rewire::aot {

struct Window {
  std::string rows, columns;  // each a struct rewire_embedded_axis
  Dims kernel, strides, dilations;
  // The pads of the attributes, in front of each axis and behind it; one axis in front is padded.
  Dims before, after;

  std::string axes() const { return rows + ", " + columns; }
};

// The axes of a window of one position on an image of one.
inline constexpr const char* kOnePosition = "REWIRE_EMBEDDED_NO_AXIS, REWIRE_EMBEDDED_NO_AXIS";

// ImageAxes names the spatial axes of an image.
struct ImageAxes {
  std::int64_t images = 0, channels = 0;
  Dims spatial;
};
ImageAxes AxesOf(const Dims& image, bool channels_last);

// `kernel` is the window where no attribute says it. Errors: kUnsupported for more than two axes.
Result<Window> WindowOf(const EmbeddedCall& call, const Dims& input, const Dims& output,
                        const Dims& kernel = {});

}  // namespace rewire::aot
