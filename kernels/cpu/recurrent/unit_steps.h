// SPDX-License-Identifier: Apache-2.0
//
// The steps of an LSTM or GRU in the form that nearly all models use. It has f32, packed weights and ONNX's
// default activations, no clipping, and a GRU's reset lies behind the product.
#pragma once

#include "rewire/kernels/cpu/recurrent/rnn.h"
#include "rewire/kernels/cpu/recurrent/unit_cells.h"

namespace rewire::kernel::cpu {

// One direction. The kernel owns the memory.
struct UnitSteps {
  const RnnCall& call;
  int direction;
  std::int64_t gates;
  RecurrentCell cell;
  const float* inputs;  // [steps * batch, width]: RnnCall::InputSums
  float* sums;          // [batch, width], scratch
  float* hidden;  // [batch, hidden]: the state before the first step, and afterwards the state after the last
  float* cells;   // [batch, hidden], in the same way; null for a GRU
  float* other_hidden;               // [batch, hidden], scratch
  const float* peepholes = nullptr;  // [3, hidden], of an LSTM; may be null
};

// Also writes y. Uses the program's threads if it is worth it.
[[nodiscard]] Status RunUnitSteps(const UnitSteps& steps);

}  // namespace rewire::kernel::cpu
