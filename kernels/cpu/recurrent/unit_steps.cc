// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/recurrent/unit_steps.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

// Units [begin, end) of all sequences, brought forward by step t from one state to the next.
void AdvanceUnits(const UnitSteps& steps, std::int64_t t, std::int64_t begin, std::int64_t end,
                  const float* state, float* next, Pace& pace) {
  const RnnCall& call = steps.call;
  const std::int64_t hidden = call.hidden(), width = call.width();
  for (std::int64_t b = 0; b < call.batch() && pace.Spend(Times(4, end - begin)); ++b) {
    const std::int64_t at = b * hidden + begin;
    const bool runs = t < call.LengthOf(b);
    const std::int64_t time = runs ? call.TimeOf(steps.direction, t, b) : t;
    if (runs) {
      steps.cell({steps.sums + b * width + begin, steps.inputs + call.RowOf(time, b) * width + begin, hidden,
                  end - begin, steps.cells == nullptr ? nullptr : steps.cells + at, state + at, next + at,
                  steps.peepholes == nullptr ? nullptr : steps.peepholes + begin});
    } else {
      std::copy_n(state + at, end - begin, next + at);
    }
    float* y = call.OutputRow<float>(time, steps.direction, b);
    if (y == nullptr) continue;
    if (runs)
      std::copy_n(next + at, end - begin, y + begin);
    else
      std::fill_n(y + begin, end - begin, 0.0F);
  }
}

// How many parts the units are taken in, each with its own columns of all gates: whole panels, so that none
// has columns of two parts. One where a second thread would cost more than it saves: all of the state goes
// from each to the others after a step.
std::int64_t PartsOf(const RnnCall& call) {
  constexpr std::int64_t kStepWork = 524288;  // products
  const std::int64_t hidden = call.hidden();
  const std::int64_t work = Times(call.batch(), hidden, call.width());
  if (work < kStepWork || hidden % kPanelWidth != 0) return 1;
  return std::min({std::int64_t{__rewire_kernel_api->thread_count()}, hidden / kPanelWidth, kMostStageTasks});
}

// Steps of one part each. What threads need to wait for each other takes as long as a small step.
template <typename Step>
Status RunInOrder(std::int64_t count, const Step& step) {
  Pace pace;
  for (std::int64_t t = 0; t < count && !pace.stopped(); ++t) step(t, 0, pace);
  return pace.status();
}

}  // namespace

Status RunUnitSteps(const UnitSteps& steps) {
  const RnnCall& call = steps.call;
  const std::int64_t hidden = call.hidden();
  const float* bias = call.Biases<float>(steps.direction);
  const std::int64_t parts = PartsOf(call);
  const std::int64_t panels = PanelCount(call.width());
  float* const states[] = {steps.hidden, steps.other_hidden};
  const auto step = [&](std::int64_t t, std::int64_t part, Pace& pace) {
    const float* state = states[t % 2];
    const RowsByPanels product = {state,        call.batch(),
                                  hidden,       call.Recurrence<float>(steps.direction),
                                  call.width(), bias == nullptr ? nullptr : bias + call.width(),
                                  nullptr,      Activation(),
                                  steps.sums};
    if (parts == 1) {
      if (MultiplyPanels(product, 0, panels, pace))
        AdvanceUnits(steps, t, 0, hidden, state, states[(t + 1) % 2], pace);
      return;
    }
    const std::int64_t of_gate = panels / steps.gates;
    const std::int64_t begin = of_gate * part / parts, end = of_gate * (part + 1) / parts;
    for (std::int64_t gate = 0; gate < steps.gates; ++gate) {
      if (!MultiplyPanels(product, gate * of_gate + begin, gate * of_gate + end, pace)) return;
    }
    AdvanceUnits(steps, t, begin * kPanelWidth, end * kPanelWidth, state, states[(t + 1) % 2], pace);
  };
  Status status = parts == 1 ? RunInOrder(call.steps(), step) : ParallelStages(call.steps(), parts, step);
  if (!status.ok() || call.steps() % 2 == 0) return status;
  return CopyAll(steps.hidden, steps.other_hidden, Times(call.batch(), hidden, sizeof(float)));
}

}  // namespace rewire::kernel::cpu
