// SPDX-License-Identifier: Apache-2.0
//
// What an LSTM computes after its products, with the activations that nearly all models have.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Some units of one sequence, brought forward by one step:
//   cell = sigmoid(forget) * cell + sigmoid(input) * tanh(candidate)
//   state = sigmoid(output) * tanh(cell)
// where each gate is products + more. The gates lie in ONNX's order: input, output, forget, candidate.
struct LstmUnits {
  const float* products;
  const float* more;
  std::int64_t gate_step;  // elements from a gate's sums to the next gate's
  std::int64_t count;
  float* cell;   // read and written
  float* state;  // written
};

using LstmCell = void (*)(const LstmUnits& units);

// The cell of the best instruction set that this CPU and the build support.
LstmCell ChooseLstmCell();

// The same, chosen once per process.
LstmCell BestLstmCell();

}  // namespace rewire::kernel::cpu
