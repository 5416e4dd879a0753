// SPDX-License-Identifier: Apache-2.0
// Recurrent layers.
#include "rewire/kernels/contract/recurrent.h"

#include <fmt/format.h>

#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/kernels/contract/names.h"

namespace rewire::aot {
namespace {

bool IsLstm(const EmbeddedCall& call) { return call.name() == names::kLstm; }

// Whether the attributes ask for the activations that the kernels have.
bool HasUsualActivations(const EmbeddedCall& call, std::int64_t directions) {
  const std::string given = call.attributes.String("activations", "");
  const std::string once = IsLstm(call) ? "Sigmoid,Tanh,Tanh" : "Sigmoid,Tanh";
  return given.empty() || given == (directions == 1 ? once : once + "," + once);
}

Result<std::string> Recurrent(EmbeddedCall& call) {
  const std::size_t states = IsLstm(call) ? 2 : 1;
  if (call.outputs() != states + 1) return call.Refuse("it has other arguments");
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    if (Status need = call.NeedInput(i, i == 4 ? kInt32 : kFloat32); !need) return need;
  }
  const std::string direction = call.attributes.String("direction", "forward");
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (call.attributes.Float("clip", 0) != 0) return call.Refuse("its sums are clipped");
  if (!HasUsualActivations(call, directions)) return call.Refuse("its activations are not ONNX's default");
  if (call.attributes.Bool("input_forget", false)) return call.Refuse("its gates input and forget are one");
  const bool packed = call.attributes.Bool("packed", false);
  const bool linear = call.attributes.Bool("linear_before_reset", false);
  if (packed && !IsLstm(call) && !linear)
    return call.Refuse("its reset is in front of a product with packed weights");
  const bool batch_first = call.attributes.Bool("layout", false);
  const Dims& x = call.InputDims(0);
  const Dims& last = call.OutputDims(1);
  if (x.size() != 3 || last.size() != 3 || x[2] == 0) return call.Refuse("it has other arguments");
  const std::int64_t width = names::GatesOf(call.name()) * last[2];
  const std::int64_t columns = packed ? (width + 15) / 16 * 16 : width;
  const std::string layer = call.definitions().Struct(
      "recurrent", fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, rewire_embedded_multiply_{}}}",
                               x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2], last[2], columns,
                               directions, direction == "reverse" ? 1 : 0, batch_first ? 1 : 0,
                               linear ? 1 : 0, packed ? "packed" : "rows"));
  std::string inputs;
  for (std::size_t i = 0; i < 5 + states + (IsLstm(call) ? 1 : 0); ++i) inputs += ", " + call.Input(i);
  std::string outputs;
  for (std::size_t i = 0; i <= states; ++i) outputs += ", " + call.Output(i);
  return fmt::format("rewire_embedded_{}_f32(&{}{}, (float *)({}){})", names::Stem(call.name()), layer,
                     inputs, call.Workspace(), outputs);
}

std::uint64_t RecurrentWorkspace(const EmbeddedCall& call) {
  if (call.outputs() < 2 || call.OutputDims(1).size() != 3) return 0;
  const auto hidden = static_cast<std::uint64_t>(call.OutputDims(1)[2]);
  const auto gates = static_cast<std::uint64_t>(names::GatesOf(call.name()));
  return (2 * gates + (IsLstm(call) ? 0 : 1)) * hidden * sizeof(float);
}

constexpr EmbeddedKernel kRecurrentKernels[] = {
    {names::kLstm, 3, 0, Recurrent, RecurrentWorkspace},
    {names::kGru, 3, 0, Recurrent, RecurrentWorkspace},
};

}  // namespace

std::span<const EmbeddedKernel> RecurrentKernels() { return kRecurrentKernels; }

}  // namespace rewire::aot
