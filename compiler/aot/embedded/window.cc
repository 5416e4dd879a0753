// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/embedded/window.h"

#include "rewire/kernels/contract/window.h"

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
  contract::WindowAttributes given;
  given.Read(call.attributes, kernel.empty(), false);
  Status fits;
  given.ForEachList(count, [&](const contract::WindowAttributes::List& list) {
    const Result<Dims> numbers = call.List(list.name, list.count, 0);
    if (fits && !numbers) fits = Forward(numbers);
  });
  if (!fits) return Forward(fits);
  Window window;
  window.kernel = kernel.empty() ? given.kernel : kernel;
  if (window.kernel.empty()) window.kernel = Dims(count, 1);
  if (output.size() != count || window.kernel.size() != count)
    return call.Refuse("input, output and window have not as many axes");
  window.rows = "REWIRE_EMBEDDED_NO_AXIS";
  for (std::size_t i = 0; i < count; ++i) {
    contract::WindowStep step = given.Step(i, count);
    const contract::WindowSize covered =
        contract::CoveredBy(contract::WindowSize(output[i]), contract::WindowSize(window.kernel[i]), step);
    if (contract::IsSame(given.auto_pad))
      contract::SetSamePads(given.auto_pad, covered.value, input[i], &step);
    window.strides.push_back(step.stride);
    window.dilations.push_back(step.dilation);
    window.before.push_back(step.before);
    window.after.push_back(step.after);
    std::string& axis = i + 1 == count ? window.columns : window.rows;
    axis = Braced({input[i], output[i], window.kernel[i], step.stride, step.dilation, step.before});
  }
  return window;
}

}  // namespace rewire::aot
