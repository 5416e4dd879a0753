// SPDX-License-Identifier: Apache-2.0
// Drawn calls of recurrent layers.
#include <cmath>

#include "rewire/tests/compiler/aot/kernel_cases.h"

namespace rewire::test {
namespace {

Tensor Given(Random& random, const Dims& dims) {
  return Maybe(random, random.Floats(dims, -4, 4, 0.25F), kFloat32);
}

// Sequences end at different steps, maybe at once.
Tensor Lengths(Random& random, std::int64_t batch, std::int64_t steps) {
  return Maybe(random, random.Integers<std::int32_t>({batch}, 0, static_cast<int>(steps)), kInt32);
}

Maker Layer(std::int64_t gates) {
  return [=](Random& random) {
    const bool is_lstm = gates == 4;
    const bool is_linear = random.Bool(), packed = random.Bool() && (is_lstm || is_linear);
    const bool batch_first = random.Bool();
    const char* const names[] = {"forward", "reverse", "bidirectional"};
    const int direction = random.Int(0, 2);
    const std::int64_t directions = direction == 2 ? 2 : 1, steps = random.Int(1, 4),
                       batch = random.Int(1, 3), hidden = random.Int(1, 9), width = gates * hidden;
    // Without w, x has the products with it, of one direction.
    const bool has_w = directions == 2 || random.Int(0, 3) != 0;
    const std::int64_t inputs = has_w ? random.Int(1, 5) : width;
    const std::int64_t columns = packed ? (width + 15) / 16 * 16 : width;
    const auto weights = [&](std::int64_t depth) {
      return packed ? Dims{directions * columns, depth} : Dims{directions, width, depth};
    };
    const Dims state = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
    const Dims y =
        batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
    const std::int64_t nothing = 0;
    Case call;
    call.attributes = std::string("direction=\"") + names[direction] +
                      "\", layout=" + std::to_string(batch_first ? 1 : 0) +
                      ", packed=" + std::to_string(packed ? 1 : 0);
    if (!is_lstm) call.attributes += ", linear_before_reset=" + std::to_string(is_linear ? 1 : 0);
    if (random.Int(0, 3) == 0) {
      const std::string once = is_lstm ? "Sigmoid,Tanh,Tanh" : "Sigmoid,Tanh";
      call.attributes += ", activations=\"" + once + (directions == 2 ? "," + once : "") + "\"";
    }
    call.inputs = {
        random.Floats(batch_first ? Dims{batch, steps, inputs} : Dims{steps, batch, inputs}),
        has_w ? random.Floats(weights(inputs), -4, 4, 0.125F) : *Tensor::Make(kFloat32, {&nothing, 1}),
        random.Floats(weights(hidden), -4, 4, 0.125F),
        Given(random, {directions, 2 * width}),
        Lengths(random, batch, steps),
        Given(random, state)};
    call.outputs = {random.Int(0, 3) == 0 ? "f32[0]" : Float(y), Float(state)};
    if (is_lstm) {
      call.inputs.push_back(Given(random, state));
      call.inputs.push_back(Given(random, {directions, 3 * hidden}));
      call.outputs.push_back(Float(state));
    }
    // The sums of a first step are exact in any order. Of a GRU without linear_before_reset, the stock kernel
    // uses the C library's functions.
    call.bound = steps == 1 && (is_lstm || is_linear) ? 0 : 4e-6;
    return call;
  };
}

}  // namespace

void AddRecurrentCases(Makers* makers) {
  makers->insert({{"rewire.lstm", Layer(4)}, {"rewire.gru", Layer(3)}});
}

Makers AllMakers() {
  Makers makers;
  AddElementwiseCases(&makers);
  AddProductCases(&makers);
  AddMovementCases(&makers);
  AddStatisticsCases(&makers);
  AddRecurrentCases(&makers);
  AddVisionCases(&makers);
  return makers;
}

}  // namespace rewire::test
