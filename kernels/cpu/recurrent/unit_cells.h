// SPDX-License-Identifier: Apache-2.0
//
// The cells of LSTMs and GRUs after their products, with the activations that nearly all models have.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Some units of one sequence, brought forward by one step. `products` are the state's with r and its bias,
// `more` the input's with w and its bias, both for all gates in ONNX's order.
//
// LSTM: input, output, forget, candidate; each gate is products + more.
//   cell = sigmoid(forget) * cell + sigmoid(input) * tanh(candidate)
//   next = sigmoid(output) * tanh(cell)
// With peepholes, input and forget also have a peephole times the cell before, output times the cell after.
// GRU, with the reset behind the product (linear_before_reset): update, reset, candidate.
//   h = tanh(more + sigmoid(reset) * products)
//   next = (1 - sigmoid(update)) * h + sigmoid(update) * state
struct RecurrentUnits {
  const float* products;
  const float* more;
  std::int64_t gate_step;  // elements from a gate's sums to the next gate's
  std::int64_t count;
  float* cell;         // an LSTM's; read and written
  const float* state;  // the state before the step; an LSTM does not read it, and it may be null
  float* next;         // the state after it; may be `state`
  // An LSTM's, of input, output and forget: that many elements apart, as the sums are. Null: none.
  const float* peepholes = nullptr;
};

using RecurrentCell = void (*)(const RecurrentUnits& units);

struct RecurrentCells {
  RecurrentCell lstm;
  RecurrentCell gru;
};

// The cells of the best instruction set that this CPU and the build support.
RecurrentCells ChooseRecurrentCells();

// The same, chosen once per process.
const RecurrentCells& BestRecurrentCells();

}  // namespace rewire::kernel::cpu
