// SPDX-License-Identifier: Apache-2.0
//
// The layers share this in running their steps: scratch, and its bounds.
#pragma once

#include <algorithm>

#include "rewire/kernels/cpu/recurrent/rnn.h"
#include "rewire/kernels/cpu/recurrent/unit_steps.h"
#include "rewire/kernels/cpu/support/gemm_workspace.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// Scratch of one call.
template <typename T>
struct Buffers {
  const T* inputs;  // [steps * batch, width], of one direction
  T* input_sums;    // what they may be written to
  T* sums;          // [batch, width]
  T* hidden;        // [batch, hidden], as the next two
  T* cell;
  T* reset;  // or the other state of two
  GemmScratch<T> gemm;

  Status Make(const RnnCall& call) {
    if (Status s = Workspace(std::max<std::int64_t>(1, call.InputScratch()), &input_sums); !s.ok()) return s;
    const std::int64_t state = Times(call.batch(), call.hidden());
    const std::int64_t of_sums = Times(call.batch(), call.width());
    T* rest = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, Plus(of_sums, Times(3, state))), &rest); !s.ok())
      return s;
    sums = rest;
    hidden = sums + of_sums;
    cell = hidden + state;
    reset = cell + state;
    return Status();
  }
};

// The same for shapes that a file gives: `last_state` is the position of an output with all last states, and
// a step multiplies by `step_gates` of the gates at once. Without w, x has been multiplied already.
inline bool DeclareBuffers(WorkspaceSizes& sizes, const RnnAttributes& attributes, std::int64_t gates,
                           std::int64_t step_gates, std::int32_t last_state) {
  const DLTensor *x = sizes.Tensor(0, 3), *state = sizes.Tensor(last_state, 3);
  if (x == nullptr || state == nullptr) return false;
  const std::int64_t hidden = LastDim(state);
  const std::int64_t width = Times(gates, hidden);
  const std::int64_t batch = state->shape[attributes.batch_first ? 0 : 1];
  const std::int64_t rows = Times(x->shape[0], x->shape[1]);
  const std::int64_t inputs = x->shape[2];
  const std::int64_t element = x->dtype.bits / 8;
  const DLTensor* w = sizes.Tensor(1);
  const bool multiplies_inputs = w != nullptr && (SizeOf(w) != 0 || inputs == 0);
  sizes.Take(multiplies_inputs ? std::max<std::int64_t>(1, Times(rows, width)) : 1, element);
  sizes.Take(std::max<std::int64_t>(1, Times(batch, width + Times(3, hidden))), element);
  // A copy of sequence_lens; where it is left out, another argument stands in its place.
  const DLTensor* lengths = sizes.Tensor(4, 1);
  if (lengths != nullptr && SameDType(lengths->dtype, DTypeOf<std::int32_t>()) && SizeOf(lengths) != 0)
    sizes.Take(std::max<std::int64_t>(1, batch), sizeof(std::int32_t));
  if (attributes.packed) return true;
  // One block for the products of all steps, another one for those of a step when they need more.
  const std::int64_t columns = Times(step_gates, hidden);
  const std::int64_t of_step = PacksMatrix(batch, columns, hidden) ? MostPacked(columns, hidden) : 0;
  const bool packs_inputs = multiplies_inputs && PacksMatrix(rows, width, inputs);
  if (packs_inputs) sizes.Take(MostPacked(width, inputs), element);
  if (of_step > (packs_inputs ? MostPacked(width, inputs) : 0)) sizes.Take(of_step, element);
  return true;
}

// Runs both directions: before(direction) loads states and input products, step(direction, t) brings all
// batches forward by one step, after(direction) stores the last states.
template <typename T, typename Step>
Status RunSteps(const RnnCall& call, int direction, Buffers<T>& buffers, const Step& step) {
  if (Status s = call.InputSums<T>(direction, buffers.input_sums, buffers.gemm, &buffers.inputs); !s.ok())
    return s;
  Pace pace;
  for (std::int64_t t = 0; t < call.steps(); ++t) {
    if (Status s = step(t); !s.ok()) return s;
    for (std::int64_t b = 0; b < call.batch(); ++b) {
      if (!pace.Spend(8 + call.hidden())) return Stopped();
      const bool runs = t < call.LengthOf(b);
      call.StoreOutput<T>(runs ? call.TimeOf(direction, t, b) : t, direction, b,
                          runs ? buffers.hidden + b * call.hidden() : nullptr);
    }
  }
  return Status();
}

// The products of all steps' inputs, and the steps in their usual form.
inline Status RunUsual(const RnnCall& call, int direction, std::int64_t gates, RecurrentCell cell,
                       Buffers<float>& buffers, float* cells, const float* peepholes = nullptr) {
  Status s = call.InputSums<float>(direction, buffers.input_sums, buffers.gemm, &buffers.inputs);
  if (!s.ok()) return s;
  return RunUnitSteps({call, direction, gates, cell, buffers.inputs, buffers.sums, buffers.hidden, cells,
                       buffers.reset, peepholes});
}

}  // namespace rewire::kernel::cpu
