// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/embedded/window.h"

#include <algorithm>

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

namespace {

// The most positions that LeadUnder looks at.
constexpr std::int64_t kMostPositions = 1 << 22;

// The first place on an axis of the image that the window reads at position `o`; nothing if it reads none.
std::optional<std::int64_t> FirstRead(const Window& window, const Dims& input, std::size_t axis,
                                      std::int64_t o) {
  const std::int64_t begin = o * window.strides[axis] - window.before[axis];
  const std::int64_t dilation = window.dilations[axis];
  const std::int64_t skipped = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
  const std::int64_t first = begin + skipped * dilation;
  if (skipped >= window.kernel[axis] || first >= input[axis]) return std::nullopt;
  return first;
}

}  // namespace

std::optional<std::uint64_t> LeadUnder(const Window& window, const Positions& x, const Positions& out) {
  const std::int64_t each = Product(out.spatial), image = Product(x.spatial);
  if (each < 1 || out.images > kMostPositions / each) return std::nullopt;
  // From the last position, `reads` is the first place that is still read, and `lead` what it leaves.
  std::int64_t reads = x.images * image, lead = 0;
  for (std::int64_t at = out.images * each - 1; at >= 0; --at) {
    std::int64_t rest = at % each, place = 0, step = 1;
    bool is_outside = false;
    for (std::size_t axis = out.spatial.size(); axis-- > 0;) {
      const auto first = FirstRead(window, x.spatial, axis, rest % out.spatial[axis]);
      is_outside = is_outside || !first;
      place += first.value_or(0) * step;
      rest /= out.spatial[axis];
      step *= x.spatial[axis];
    }
    if (!is_outside) reads = std::min(reads, at / each * image + place);
    lead = std::max(lead, at * out.bytes - reads * x.bytes);
  }
  return static_cast<std::uint64_t>(lead);
}

std::uint64_t LeadOfRows(std::int64_t rows, std::int64_t x_bytes, std::int64_t out_bytes) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, (rows - 1) * (out_bytes - x_bytes)));
}

}  // namespace rewire::aot
