// SPDX-License-Identifier: Apache-2.0
// Resizing: positions and weights become tables of the source.
#include "rewire/kernels/contract/vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/resize.h"

namespace rewire::aot {
namespace {

constexpr std::size_t kScales = 2;  // the input

struct Resizing {
  contract::ResizeAttributes attributes;
  std::vector<contract::ResizeAxis> axes;

  bool IsIdentity(std::size_t axis) const { return axes[axis].IsIdentity(attributes); }
};

Result<Resizing> ResizingOf(const EmbeddedCall& call) {
  Resizing resizing;
  resizing.attributes.Read(call.attributes);
  if (resizing.attributes.coordinates == contract::Coordinates::kTfCropAndResize)
    return call.Refuse("it resizes a region (tf_crop_and_resize)");
  const Dims& x = call.InputDims(0);
  const Dims& out = call.OutputDims();
  if (x.size() != out.size()) return call.Refuse("input and output have not as many axes");
  if (Product(x) == 0) return call.Refuse("its input has no elements");
  for (std::size_t i = 0; i < x.size(); ++i) {
    resizing.axes.push_back({x[i], out[i], static_cast<double>(out[i]) / static_cast<double>(x[i]), 0, 1});
  }
  if (!call.Has(kScales)) return resizing;
  if (!call.FloatsOf(kScales)) return call.Refuse("its scales are known only when the program runs");
  const std::vector<double>& scales = *call.FloatsOf(kScales);
  Dims named = resizing.attributes.axes;
  for (std::size_t i = 0; named.size() < scales.size(); ++i) named.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int64_t axis = named[i] < 0 ? named[i] + static_cast<std::int64_t>(x.size()) : named[i];
    if (axis < 0 || axis >= static_cast<std::int64_t>(x.size()))
      return call.Refuse("its scales do not fit x");
    contract::ResizeAxis& resized = resizing.axes[static_cast<std::size_t>(axis)];
    // The VM refuses the call where the scale does not give the size. Sizes are rounded in either way.
    const double size = static_cast<double>(resized.input) * scales[i];
    const auto given = static_cast<double>(resized.output);
    if (!(size >= given - 0.51 && size <= given + 1)) return call.Refuse("its scales do not fit x");
    resized.scale = scales[i];
  }
  return resizing;
}

struct Unlimited {
  bool Spend(std::int64_t) const { return true; }
};

// Copies of runs from places that a table lists: axes in front of all that are resized, and behind them, need
// none.
Result<std::string> Nearest(EmbeddedCall& call, const Resizing& resizing) {
  const Dims& x = call.InputDims(0);
  const auto element = static_cast<std::int64_t>(ElementBytes(call.InputValue(0).dtype));
  std::size_t first = 0;
  std::size_t end = x.size();
  while (resizing.IsIdentity(first)) ++first;
  while (resizing.IsIdentity(end - 1)) --end;
  if (end - first > kMostEmbeddedRank) return call.Refuse("it has more than 8 axes");
  const Unlimited pace;
  Dims dims;
  Dims places;
  for (std::size_t i = first; i < end; ++i) {
    const contract::ResizeAxis& axis = resizing.axes[i];
    const std::int64_t step = Product(x, i + 1, x.size()) * element;
    for (std::int64_t o = 0; o < axis.output; ++o) {
      double weight = 0;
      const std::int64_t at =
          resizing.IsIdentity(i) ? o : axis.At(resizing.attributes, o, &weight, pace).first;
      places.push_back(std::clamp<std::int64_t>(at, 0, axis.input - 1) * step);
    }
    dims.push_back(axis.output);
  }
  const std::string sizes = call.definitions().Struct(
      "resize_nearest",
      fmt::format("{{{}, {}, {}, {}, {}, {}}}", Product(x, 0, first), Product(x, first, x.size()) * element,
                  Product(x, end, x.size()) * element, dims.size(), Braced(dims),
                  call.definitions().Integers(places)));
  return fmt::format("rewire_embedded_resize_nearest_elements(&{}, {}, {});", sizes, call.Input(0),
                     call.Output());
}

// The struct of a pass along one axis.
std::string Pass(EmbeddedCall& call, const Resizing& resizing, std::size_t at) {
  const contract::ResizeAxis& axis = resizing.axes[at];
  const Unlimited pace;
  std::vector<contract::Taps> taps;
  std::vector<std::vector<double>> weights;
  std::int64_t most = 1;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    std::vector<double> each(static_cast<std::size_t>(axis.MostTaps(resizing.attributes)));
    taps.push_back(axis.At(resizing.attributes, o, each.data(), pace));
    each.resize(static_cast<std::size_t>(taps.back().count));
    weights.push_back(std::move(each));
    most = std::max(most, taps.back().count);
  }
  Dims first;
  std::vector<double> all;
  for (std::size_t o = 0; o < taps.size(); ++o) {
    // Beyond an end all positions are alike.
    first.push_back(std::clamp(taps[o].first, -most, axis.input));
    weights[o].resize(static_cast<std::size_t>(most), 0);
    all.insert(all.end(), weights[o].begin(), weights[o].end());
  }
  return call.definitions().Struct(
      "resize", fmt::format("{{{}, {}, {}, {}, {}, {}, {}}}", Product(call.InputDims(0), 0, at), axis.input,
                            axis.output, Product(call.OutputDims(), at + 1, resizing.axes.size()), most,
                            call.definitions().Integers(first), call.definitions().Floats(all)));
}

// The axes of the passes, in their order.
std::vector<std::size_t> PassesOf(const Resizing& resizing) {
  std::vector<std::size_t> passes;
  for (std::size_t i = resizing.axes.size(); i-- > 0;) {
    if (!resizing.IsIdentity(i)) passes.push_back(i);
  }
  return passes;
}

// The floats behind a pass along this axis.
std::uint64_t FloatsBehind(const EmbeddedCall& call, std::size_t axis) {
  return static_cast<std::uint64_t>(Product(call.InputDims(0), 0, axis) *
                                    Product(call.OutputDims(), axis, call.OutputDims().size()));
}

// Two buffers lie between passes: the first one has what the first, the third and so on gives.
std::pair<std::uint64_t, std::uint64_t> BuffersOf(const EmbeddedCall& call,
                                                  const std::vector<std::size_t>& passes) {
  std::uint64_t floats[2] = {0, 0};
  for (std::size_t i = 0; i + 1 < passes.size(); ++i)
    floats[i % 2] = std::max(floats[i % 2], FloatsBehind(call, passes[i]));
  return {floats[0], floats[1]};
}

Result<std::string> Resize(EmbeddedCall& call) {
  const DLDataType dtype = call.InputValue(0).dtype;
  const Result<Resizing> resizing = ResizingOf(call);
  if (!resizing) return Forward(resizing);
  const std::vector<std::size_t> passes = PassesOf(*resizing);
  if (passes.empty())
    return fmt::format("memcpy({}, {}, {});", call.Output(), call.Input(0), call.OutputValue().bytes);
  if (resizing->attributes.Copies()) return Nearest(call, *resizing);
  if (dtype != kFloat32 && dtype != kInt8 && dtype != kUInt8)
    return call.Refuse(fmt::format("it mixes elements of {}", DTypeName(dtype)));
  const std::string name(DTypeName(dtype));
  const auto buffers = BuffersOf(call, passes);
  const auto buffer = [&](std::size_t pass) {
    return fmt::format("(float *)({}){}", call.Workspace(),
                       pass % 2 == 0 ? std::string() : fmt::format(" + {}", buffers.first));
  };
  std::string text;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool is_first = i == 0;
    const bool is_last = i + 1 == passes.size();
    const std::string from = is_first ? name : "f32";
    const std::string to = is_last ? name : "f32";
    text += fmt::format("{}rewire_embedded_resize_{}{}(&{}, {}, {});", is_first ? "" : "\n  ", from,
                        from == to ? std::string() : "_to_" + to, Pass(call, *resizing, passes[i]),
                        is_first ? call.Input(0) : buffer(i - 1), is_last ? call.Output() : buffer(i));
  }
  return text;
}

std::uint64_t ResizeWorkspace(const EmbeddedCall& call) {
  const Result<Resizing> resizing = ResizingOf(call);
  if (!resizing || resizing->attributes.Copies()) return 0;
  const auto buffers = BuffersOf(call, PassesOf(*resizing));
  return (buffers.first + buffers.second) * sizeof(float);
}

constexpr EmbeddedKernel kVisionKernels[] = {
    {names::kResize, 1, 1, Resize, ResizeWorkspace, nullptr, kScales},
};

}  // namespace

std::span<const EmbeddedKernel> VisionKernels() { return kVisionKernels; }

}  // namespace rewire::aot
