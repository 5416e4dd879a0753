// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers on the device that REWIRE_TEST_DEVICE names, beside the CPU.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/devices/stock_call.h"

namespace rewire::test {
namespace {

// 37 units take more than a group and do not fill the last one.
constexpr std::int64_t kSteps = 5, kBatch = 3, kInputs = 9, kHidden = 37;

struct Layer {
  std::string kernel;
  std::int64_t gates;
  std::string attributes;
  std::int64_t directions = 1;
  bool batch_first = false;
  bool bias = true, lengths = false, states = true, peepholes = false, y = true, multiplied = false;
};

const Operand kMissing{"f32", {0}};

// A missing state is 0, and so on: every argument may be missing.
StockCall CallOf(const Layer& layer) {
  const std::int64_t width = layer.gates * kHidden;
  const auto real = [](std::vector<std::int64_t> shape) {
    return Operand{"f32", std::move(shape), -0.4, 0.5};
  };
  const std::int64_t inputs = layer.multiplied ? width : kInputs;
  const bool first = layer.batch_first;
  const std::vector<std::int64_t> state =
      first ? std::vector{kBatch, layer.directions, kHidden} : std::vector{layer.directions, kBatch, kHidden};
  const std::vector<std::int64_t> y = first ? std::vector{kBatch, kSteps, layer.directions, kHidden}
                                            : std::vector{kSteps, layer.directions, kBatch, kHidden};
  StockCall call{layer.kernel, layer.attributes, {}, {}};
  if (first) call.attributes += (call.attributes.empty() ? "" : ", ") + std::string("layout = 1");
  call.inputs = {real(first ? std::vector{kBatch, kSteps, inputs} : std::vector{kSteps, kBatch, inputs}),
                 layer.multiplied ? kMissing : real({layer.directions, width, inputs}),
                 real({layer.directions, width, kHidden}),
                 layer.bias ? real({layer.directions, 2 * width}) : kMissing,
                 layer.lengths ? Operand{"i32", {kBatch}, 0, 5.9} : Operand{"i32", {0}},
                 layer.states ? real(state) : kMissing};
  if (layer.kernel == "lstm") {
    call.inputs.push_back(layer.states ? real(state) : kMissing);
    call.inputs.push_back(layer.peepholes ? real({layer.directions, 3 * kHidden}) : kMissing);
  }
  call.outputs = {layer.y ? Operand{"f32", y} : kMissing, {"f32", state}};
  if (layer.kernel == "lstm") call.outputs.push_back({"f32", state});
  return call;
}

TEST_CASE("recurrent layers run on a device as on the CPU") {
  const std::string both = "direction = \"bidirectional\"", reverse = "direction = \"reverse\"";
  for (const auto& [kernel, gates] : {std::pair("rnn", 1), std::pair("gru", 3), std::pair("lstm", 4)}) {
    const std::int64_t all = gates;
    CheckAlike(CallOf({kernel, all, ""}));
    CheckAlike(CallOf({kernel, all, reverse, 1, true, false, true}));
    CheckAlike(CallOf({kernel, all, both, 2, false, true, true}));
    CheckAlike(CallOf({kernel, all, both, 2, true, true, false, false}));
    CheckAlike(CallOf({kernel, all, "clip = 0.3", 1, false, true, false, true, false, false}));
    Layer multiplied{kernel, all, ""};
    multiplied.multiplied = true;
    CheckAlike(CallOf(multiplied));
  }
}

TEST_CASE("each kind of recurrent layer has its own forms on a device") {
  const std::string both = "direction = \"bidirectional\"";
  CheckAlike(CallOf({"gru", 3, both + ", linear_before_reset = 1", 2, false, true, true}));
  CheckAlike(CallOf({"lstm", 4, both, 2, false, true, false, true, true}));
  CheckAlike(CallOf({"lstm", 4, "input_forget = 1", 1, false, true, true, true, true}));
  for (const char* function : {"Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu",
                               "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"}) {
    CheckAlike(CallOf({"rnn", 1, "activations = \"" + std::string(function) + "\""}));
  }
  CheckAlike(CallOf({"gru", 3,
                     both + ", activations = \"HardSigmoid,Elu,Sigmoid,ScaledTanh\", activation_alpha = "
                            "[0.3, 0.7, 1.1], activation_beta = [0.4, 0.9]",
                     2}));
}

}  // namespace
}  // namespace rewire::test
