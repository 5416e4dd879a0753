// SPDX-License-Identifier: Apache-2.0
// The steps of an LSTM as nearly all models have it: f32, packed weights, no clipping, no peepholes, ONNX's
// default activations.
#pragma once

#include "kernels/cpu/rnn.h"

namespace rewire::kernel::cpu {

// One direction. The memory is the kernel's.
struct LstmSteps {
  const RnnCall& call;
  int direction;
  const float* inputs;  // [steps * batch, width]: RnnCall::InputSums
  float* sums;          // [batch, width], scratch
  float* hidden;        // [batch, hidden]: the state before the first step, then that after the last
  float* cell;          // [batch, hidden], likewise
  float* other_hidden;  // [batch, hidden], scratch
};

// Writes y too. On the program's threads where that is worth it.
void RunLstmSteps(const LstmSteps& steps);

}  // namespace rewire::kernel::cpu
