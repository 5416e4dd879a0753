// SPDX-License-Identifier: Apache-2.0
// The largest or the mean under a window.
#include <fmt/format.h>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/compiler/aot/embedded/window.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/layout_attribute.h"

namespace rewire::aot {
namespace {

// The content of a struct rewire_embedded_pool; `window` is what it was made of.
Result<std::string> Pool(EmbeddedCall& call, Window* window) {
  const bool is_last = contract::ReadChannelsLast(call.attributes);
  const ImageAxes x = AxesOf(call.InputDims(0), is_last);
  Result<Window> found = WindowOf(call, x.spatial, AxesOf(call.OutputDims(), is_last).spatial);
  if (!found) return Forward(found);
  *window = *found;
  return fmt::format("{{{}, {}, {}}}", is_last ? x.images : x.images * x.channels, is_last ? x.channels : 1,
                     window->axes());
}

Result<std::string> MaxPool(EmbeddedCall& call) {
  const DLDataType dtype = call.InputValue(0).dtype;
  if (dtype != kFloat32 && dtype != kInt8 && dtype != kUInt8) {
    return call.Refuse(fmt::format("its input is {}", TensorText(call.InputValue(0))));
  }
  if (Status need = call.NeedOutput(dtype); !need) return need;
  Window window;
  const Result<std::string> pool = Pool(call, &window);
  if (!pool) return pool;
  return fmt::format("rewire_embedded_max_pool_{}(&{}, {}, {});", DTypeName(dtype),
                     call.definitions().Struct("pool", *pool), call.Input(0), call.Output());
}

Result<std::string> AvgPool(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  Window window;
  const Result<std::string> pool = Pool(call, &window);
  if (!pool) return pool;
  const std::string sizes = call.definitions().Struct(
      "avg_pool",
      fmt::format("{{{}, {}, {}, {}}}", *pool, call.Read<contract::AveragePoolAttributes>().count_pad ? 1 : 0,
                  window.after.size() == 2 ? window.after[0] : 0, window.after.back()));
  return fmt::format("rewire_embedded_avg_pool_f32(&{}, {}, {});", sizes, call.Input(0), call.Output());
}

std::optional<std::uint64_t> LeadOfPool(const EmbeddedCall& call) {
  const bool is_last = contract::ReadChannelsLast(call.attributes);
  const auto positions = [&](const Value& value) {
    const ImageAxes axes = AxesOf(value.dims, is_last);
    const auto bytes = static_cast<std::int64_t>(ElementBytes(value.dtype));
    return is_last ? Positions{axes.images, axes.spatial, axes.channels * bytes}
                   : Positions{axes.images * axes.channels, axes.spatial, bytes};
  };
  const Positions x = positions(call.InputValue(0)), out = positions(call.OutputValue());
  const Result<Window> window = WindowOf(call, x.spatial, out.spatial);
  return window && x.bytes == out.bytes ? LeadUnder(*window, x, out) : std::nullopt;
}

constexpr EmbeddedKernel kPoolKernels[] = {
    {names::kMaxPool, 1, 3, MaxPool, nullptr, LeadOfPool},
    {names::kAvgPool, 1, 3, AvgPool, nullptr, LeadOfPool},
};

}  // namespace

std::span<const EmbeddedKernel> PoolKernels() { return kPoolKernels; }

}  // namespace rewire::aot
