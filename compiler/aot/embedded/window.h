// SPDX-License-Identifier: Apache-2.0
//
// The spatial axes of a window as the embedded kernels take them, with auto_pad resolved.
#pragma once

#include <cstdint>
#include <optional>
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

// An image that a kernel reads or writes position by position.
struct Positions {
  std::int64_t images = 0;
  Dims spatial;
  std::int64_t bytes = 0;  // of a position
};

// EmbeddedKernel::lead of a kernel that goes through the positions of `out` in order, and reads all of a
// window of x before it writes there. It may also do so channel by channel, if both have the same bytes for
// each.
std::optional<std::uint64_t> LeadUnder(const Window& window, const Positions& x, const Positions& out);
// The same for rows, each of which is read before its result is written.
std::uint64_t LeadOfRows(std::int64_t rows, std::int64_t x_bytes, std::int64_t out_bytes);

}  // namespace rewire::aot
