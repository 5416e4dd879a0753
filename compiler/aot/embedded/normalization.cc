// SPDX-License-Identifier: Apache-2.0
// Softmax, and elements scaled by statistics of their row.
#include <fmt/format.h>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/kernels/contract/layout_attribute.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/normalization.h"

namespace rewire::aot {
namespace {

Result<std::string> Softmax(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const Dims& x = call.InputDims(0);
  const auto given = call.Read<contract::SoftmaxAttributes>();
  const Result<std::size_t> axis = call.Axis(given.axis, x.size());
  if (!axis) return Forward(axis);
  const std::string sizes = call.definitions().Struct(
      "along", Braced({Product(x, 0, *axis), x[*axis], Product(x, *axis + 1, x.size())}));
  return fmt::format("rewire_embedded_{}_f32(&{}, {}, {});", names::Stem(call.name()), sizes, call.Input(0),
                     call.Output());
}

// The struct rewire_embedded_row_norm for rows from an axis on.
Result<std::string> Rows(EmbeddedCall& call) {
  for (std::size_t i = 0; i < call.inputs() + call.outputs(); ++i) {
    const Value& value = call.kernel().arguments[i].value;
    if (ElementsOf(value.dims) != 0 && value.dtype != kFloat32)
      return call.Refuse(fmt::format("argument {} is {}, only f32 is taken", i, TensorText(value)));
  }
  const Dims& x = call.InputDims(0);
  const auto given = call.Read<contract::RowNormAttributes>();
  const Result<std::size_t> axis = call.Axis(given.axis, x.size());
  if (!axis) return Forward(axis);
  return call.definitions().Struct(
      "row_norm", fmt::format("{{{}, {}, {}}}", Product(x, 0, *axis), Product(x, *axis, x.size()),
                              FloatText(given.epsilon)));
}

Result<std::string> LayerNorm(EmbeddedCall& call) {
  const Result<std::string> rows = Rows(call);
  if (!rows) return rows;
  const auto statistics = [&](std::size_t output) {
    return output < call.outputs() ? call.Output(output) : std::string("0");
  };
  return fmt::format("rewire_embedded_layer_norm_f32(&{}, {}, {}, {}, {}, {}, {});", *rows, call.Input(0),
                     call.Input(1), call.Input(2), call.Output(), statistics(1), statistics(2));
}

Result<std::string> RmsNorm(EmbeddedCall& call) {
  const Result<std::string> rows = Rows(call);
  if (!rows) return rows;
  if (call.inputs() != 2) return call.Refuse("it has more than two inputs");
  return fmt::format("rewire_embedded_rms_norm_f32(&{}, {}, {}, {});", *rows, call.Input(0), call.Input(1),
                     call.Output());
}

Result<std::string> GroupNorm(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  if (contract::ReadChannelsLast(call.attributes)) return call.Refuse("its channels are last");
  const Dims& x = call.InputDims(0);
  const auto given = call.Read<contract::GroupNormAttributes>();
  const std::int64_t groups = given.GroupsOf(x[1]);
  if (groups < 1) return call.Refuse("its attribute num_groups is negative");
  if (call.InputDims(1) != Dims{x[1]} || call.InputDims(2) != Dims{x[1]}) {
    return call.Refuse("scale and bias have an element for each group, not for each channel");
  }
  const std::string sizes = call.definitions().Struct(
      "group_norm", fmt::format("{{{}, {}, {}, {}, {}}}", x[0], groups, x[1] / groups,
                                Product(x, 2, x.size()), FloatText(given.epsilon)));
  return fmt::format("rewire_embedded_group_norm_f32(&{}, {}, {}, {}, {});", sizes, call.Input(0),
                     call.Input(1), call.Input(2), call.Output());
}

Result<std::string> BatchNorm(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const auto given = call.Read<contract::BatchNormAttributes>();
  const Dims& x = call.InputDims(0);
  const std::string sizes = call.definitions().Struct(
      "batch_norm",
      fmt::format("{{{{{}, {}, {}}}, {}}}", x[0], x[1], Product(x, 2, x.size()), FloatText(given.epsilon)));
  return fmt::format("rewire_embedded_batch_norm_f32(&{}, {}, {}, {}, {}, {}, {});", sizes, call.Input(0),
                     call.Input(1), call.Input(2), call.Input(3), call.Input(4), call.Output());
}

constexpr EmbeddedKernel kNormalizationKernels[] = {
    {names::kSoftmax, 1, 1, Softmax},     {names::kLogSoftmax, 1, 1, Softmax},
    {names::kLayerNorm, 2, 1, LayerNorm}, {names::kRmsNorm, 2, 1, RmsNorm},
    {names::kGroupNorm, 3, 2, GroupNorm}, {names::kBatchNorm, 5, 2, BatchNorm},
};

}  // namespace

std::span<const EmbeddedKernel> NormalizationKernels() { return kNormalizationKernels; }

}  // namespace rewire::aot
