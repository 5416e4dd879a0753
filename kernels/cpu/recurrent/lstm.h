// SPDX-License-Identifier: Apache-2.0
//
// The layer of rewire.lstm, by weights of floats or of bytes.
#pragma once

#include <algorithm>
#include <type_traits>

#include "rewire/kernels/cpu/recurrent/gate_rows.h"
#include "rewire/kernels/cpu/recurrent/recurrent_steps.h"
#include "rewire/kernels/cpu/recurrent/unit_cells.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {

// The arguments of a call besides those of all recurrent layers; y is none of `states`.
struct LstmStates {
  std::optional<TensorView> initial_h, initial_c, peepholes;
  TensorView y_h, y_c;
};

struct LstmLayer {
  RnnAttributes attributes;
  bool input_forget = false;

  Status Read(Attributes& given) {
    input_forget = given.Bool("input_forget", false);
    return attributes.Read(given, {GateFunction::kSigmoid, GateFunction::kTanh, GateFunction::kTanh});
  }

  // Checks the arguments, and runs all steps.
  Status Run(RnnCall& call, TensorView x, const std::optional<TensorView>& w, TensorView r,
             const std::optional<TensorView>& b, const std::optional<TensorView>& lengths, TensorView y,
             const LstmStates& states) const {
    Status s =
        call.Init(x, w, r, b, lengths, {{"initial_h", states.initial_h}, {"initial_c", states.initial_c}}, y,
                  {{"y_h", states.y_h}, {"y_c", states.y_c}});
    if (!s.ok()) return s;
    if (s = CheckNoOverlap("y_h", states.y_h, "y_c", states.y_c); !s.ok()) return s;
    if (const std::optional<TensorView>& p = states.peepholes; IsGiven(p)) {
      const std::int64_t shape[] = {attributes.directions, 3 * call.hidden()};
      Checks checks;
      checks.Dense("p", *p).SameDType("p", *p, "x", x).Shape("p", *p, ShapeView(shape, 2));
      if (s = checks.Take(); !s.ok()) return s;
    }
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* p = IsGiven(states.peepholes) ? states.peepholes->template data<T>() : nullptr;
      return RunSteps<T>(call, states, p);
    });
  }

 private:
  template <typename T>
  Status RunSteps(const RnnCall& call, const LstmStates& states, const T* peepholes) const {
    Buffers<T> buffers;
    if (Status s = buffers.Make(call); !s.ok()) return s;
    const std::int64_t width = call.width();
    for (int d = 0; d < attributes.directions; ++d) {
      const T* p = peepholes == nullptr ? nullptr : peepholes + d * 3 * call.hidden();
      if (Status s = call.LoadState(states.initial_h, d, buffers.hidden); !s.ok()) return s;
      if (Status s = call.LoadState(states.initial_c, d, buffers.cell); !s.ok()) return s;
      Pace pace;
      if constexpr (std::is_same_v<T, float>) {
        if (attributes.packed && !call.has_byte_weights() && IsUsual(attributes.FunctionsOf(d))) {
          Status s = RunUsual(call, d, 4, BestRecurrentCells().lstm, buffers, buffers.cell, p);
          if (s.ok()) s = call.StoreState(states.y_h, d, buffers.hidden);
          if (s.ok()) s = call.StoreState(states.y_c, d, buffers.cell);
          if (!s.ok()) return s;
          continue;
        }
      }
      const auto step = [&](std::int64_t t) -> Status {
        Status s = call.StateSums<T>(d, buffers.hidden, buffers.sums, buffers.gemm);
        for (std::int64_t b = 0; s.ok() && b < call.batch(); ++b) {
          if (!pace.Spend(1)) return Stopped();
          if (t >= call.LengthOf(b)) continue;
          if (!pace.Spend(Times(16, call.hidden()))) return Stopped();
          Cell(call, d, buffers.inputs + call.RowOf(call.TimeOf(d, t, b), b) * width,
               buffers.sums + b * width, p, buffers.hidden + b * call.hidden(),
               buffers.cell + b * call.hidden());
        }
        return s;
      };
      if (Status s = cpu::RunSteps<T>(call, d, buffers, step); !s.ok()) return s;
      if (Status s = call.StoreState(states.y_h, d, buffers.hidden); !s.ok()) return s;
      if (Status s = call.StoreState(states.y_c, d, buffers.cell); !s.ok()) return s;
    }
    return Status();
  }

  bool IsUsual(const GateFunction* functions) const {
    return !input_forget && attributes.clip == 0 && functions[0].kind == GateFunction::kSigmoid &&
           functions[1].kind == GateFunction::kTanh && functions[2].kind == GateFunction::kTanh;
  }

  // The gates i (input), o (output), f (forget) and c (candidate), in this order; peepholes i, o, f. `sum` is
  // overwritten.
  template <typename T>
  void Cell(const RnnCall& call, int d, const T* input, T* sum, const T* p, T* state, T* cell) const {
    const std::int64_t n = call.hidden();
    const GateFunction* functions = attributes.FunctionsOf(d);
    if constexpr (std::is_same_v<T, float>) {
      if (IsUsual(functions)) return BestRecurrentCells().lstm({sum, input, n, n, cell, state, state, p});
    }
    ForUnits(4 * n, [=](std::int64_t j) { sum[j] += input[j]; });
    const auto see = [&](std::int64_t gate) {
      if (p == nullptr) return;
      T* of_gate = sum + gate * n;
      const T* peephole = p + gate * n;
      ForUnits(n, [=](std::int64_t j) { of_gate[j] += peephole[j] * cell[j]; });
    };
    T *in = sum, *out = sum + n, *forget = sum + 2 * n, *candidate = sum + 3 * n;
    see(0);
    RunClippedGate(attributes, functions[0], in, n);
    if (input_forget) {
      ForUnits(n, [=](std::int64_t j) { forget[j] = 1 - in[j]; });
    } else {
      see(2);
      RunClippedGate(attributes, functions[0], forget, n);
    }
    RunClippedGate(attributes, functions[1], candidate, n);
    ForUnits(n, [=](std::int64_t j) { cell[j] = forget[j] * cell[j] + in[j] * candidate[j]; });
    see(1);
    RunClippedGate(attributes, functions[0], out, n);
    std::copy_n(cell, n, state);
    RunGate(functions[2], state, n);
    ForUnits(n, [=](std::int64_t j) { state[j] *= out[j]; });
  }
};

}  // namespace rewire::kernel::cpu
