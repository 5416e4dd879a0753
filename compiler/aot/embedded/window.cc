// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/embedded/window.h"

#include <algorithm>

namespace rewire::aot {

ImageAxes AxesOf(const Dims& image, bool channels_last) {
  const std::ptrdiff_t first = channels_last ? 1 : 2;
  const std::ptrdiff_t behind = channels_last ? 1 : 0;
  return {image[0], channels_last ? image.back() : image[1],
          Dims(image.begin() + first, image.end() - behind)};
}

Result<Window> WindowOf(const EmbeddedCall& call, const Dims& input, const Dims& output, const Dims& kernel) {
  const std::size_t count = input.size();
  if (count != 1 && count != 2) return call.Refuse("its window has more than two axes");
  if (output.size() != count || (!kernel.empty() && kernel.size() != count)) {
    return call.Refuse("input, output and window have not as many axes");
  }
  const Result<Dims> strides = call.List("strides", count, 1);
  if (!strides) return Forward(strides);
  const Result<Dims> dilations = call.List("dilations", count, 1);
  if (!dilations) return Forward(dilations);
  const Result<Dims> pads = call.List("pads", 2 * count, 0);
  if (!pads) return Forward(pads);
  const Result<Dims> shape = call.List("kernel_shape", count, 1);
  if (!shape) return Forward(shape);
  Window window{{}, {}, kernel.empty() ? *shape : kernel, *strides, *dilations, {}, {}};
  const std::string auto_pad = call.attributes.Text("auto_pad", "NOTSET");
  window.rows = "REWIRE_EMBEDDED_NO_AXIS";
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t reach =
        (output[i] - 1) * window.strides[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t total = std::max<std::int64_t>(reach - input[i], 0);
    std::int64_t before = 0;
    std::int64_t after = 0;
    if (auto_pad == "NOTSET") {
      before = (*pads)[i];
      after = (*pads)[count + i];
    } else if (auto_pad != "VALID") {
      before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    window.before.push_back(before);
    window.after.push_back(after);
    std::string& axis = i + 1 == count ? window.columns : window.rows;
    axis = Braced({input[i], output[i], window.kernel[i], window.strides[i], window.dilations[i], before});
  }
  return window;
}

}  // namespace rewire::aot
