// SPDX-License-Identifier: Apache-2.0
//
// The steps of an LSTM in the form that nearly all models use: f32, packed weights, no clipping, no
// peepholes, ONNX's default activations.
#pragma once

#include "rewire/kernels/cpu/recurrent/rnn.h"

namespace rewire::kernel::cpu {

// One direction. The kernel owns the memory.
struct LstmSteps {
  const RnnCall& call;
  int direction;
  const float* inputs;  // [steps * batch, width]: RnnCall::InputSums
  float* sums;          // [batch, width], scratch
  float* hidden;  // [batch, hidden]: the state before the first step, and afterwards the state after the last
  float* cell;    // [batch, hidden], in the same way
  float* other_hidden;  // [batch, hidden], scratch
};

// Also writes y. Uses the program's threads if it is worth it.
[[nodiscard]] Status RunLstmSteps(const LstmSteps& steps);

}  // namespace rewire::kernel::cpu
