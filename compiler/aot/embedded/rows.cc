// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/embedded/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewire/base/dtype.h"

namespace rewire::aot {
namespace {

constexpr std::size_t kMostRowInputs = 8;  // REWIRE_EMBEDDED_MOST_INPUTS

// The output's axes, and the steps of each input along them.
struct RowAxes {
  Dims dims;
  std::vector<Dims> steps;
};

// Steps of a tensor that is broadcast to `out`: 0 along axes that it does not have.
Dims BroadcastSteps(const Dims& dims, const Dims& out) {
  Dims steps(out.size(), 0);
  const Dims strides = StridesOf(dims);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) steps[out.size() - dims.size() + i] = strides[i];
  }
  return steps;
}

// Without axes of one element, and with those as one that lie end to end in all inputs.
RowAxes MergedAxes(const RowAxes& axes) {
  RowAxes merged;
  merged.steps.resize(axes.steps.size());
  for (std::size_t i = 0; i < axes.dims.size(); ++i) {
    if (axes.dims[i] == 1) continue;
    const bool joins =
        !merged.dims.empty() && std::all_of(axes.steps.begin(), axes.steps.end(), [&](const Dims& steps) {
          const auto input = static_cast<std::size_t>(&steps - axes.steps.data());
          return merged.steps[input].back() == steps[i] * axes.dims[i];
        });
    for (std::size_t input = 0; input < axes.steps.size(); ++input) {
      if (joins) merged.steps[input].pop_back();
      merged.steps[input].push_back(axes.steps[input][i]);
    }
    if (joins) {
      merged.dims.back() *= axes.dims[i];
    } else {
      merged.dims.push_back(axes.dims[i]);
    }
  }
  return merged;
}

}  // namespace

Result<std::string> RowCall(EmbeddedCall& call, const std::string& row, const std::vector<double>& numbers) {
  const std::size_t count = call.inputs() + numbers.size();
  const Dims& out = call.OutputDims();
  RowAxes axes{out, {}};
  Dims sizes;
  std::string inputs;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    if (call.InputDims(i).size() > out.size()) return call.Refuse("an input has more axes than the output");
    axes.steps.push_back(BroadcastSteps(call.InputDims(i), out));
    sizes.push_back(static_cast<std::int64_t>(ElementBytes(call.InputValue(i).dtype)));
    inputs += fmt::format("    inputs[{}] = {};\n", i, call.Input(i));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    axes.steps.push_back(Dims(out.size(), 0));
    sizes.push_back(sizeof(float));
    inputs +=
        fmt::format("    inputs[{}] = {} + {};\n", call.inputs() + i, call.definitions().Floats(numbers), i);
  }
  const std::string declared = fmt::format("{{\n    const void *inputs[{}];\n{}", count, inputs);
  axes = MergedAxes(axes);
  if (axes.dims.size() <= 1) {
    Dims steps;
    for (const Dims& each : axes.steps) steps.push_back(each.empty() ? 0 : each[0]);
    if (std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 0 || step == 1; })) {
      return fmt::format("{}    {}({}, inputs, {}, {});\n  }}", declared, row, Product(axes.dims),
                         call.definitions().Integers(steps), call.Output());
    }
  }
  if (axes.dims.size() > kMostEmbeddedRank)
    return call.Refuse("its inputs are broadcast along more than 8 axes");
  if (count > kMostRowInputs) return call.Refuse("it has more than 8 inputs that are broadcast");
  std::vector<std::string> steps;
  for (const Dims& each : axes.steps) steps.push_back(Braced(each));
  const std::string broadcast = call.definitions().Struct(
      "broadcast",
      fmt::format("{{{}, {}, {}, {{{}}}, {}, {}}}", axes.dims.size(), count, Braced(axes.dims),
                  fmt::join(steps, ", "), Braced(sizes), ElementBytes(call.OutputValue().dtype)));
  return fmt::format("{}    rewire_embedded_broadcast_rows(&{}, {}, inputs, {});\n  }}", declared, broadcast,
                     row, call.Output());
}

}  // namespace rewire::aot
