// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers. One product with the inputs of all steps comes first. Then each step has one product with
// the state.
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/cpu/recurrent/gate_rows.h"
#include "rewire/kernels/cpu/recurrent/lstm.h"
#include "rewire/kernels/cpu/recurrent/recurrent_steps.h"
#include "rewire/kernels/cpu/recurrent/unit_cells.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

struct Rnn {
  static constexpr const char* kName = names::kRnn;
  RnnAttributes attributes;
  static Status Make(Attributes& given, Rnn* rnn) {
    return rnn->attributes.Read(given, {GateFunction::kTanh});
  }

  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h, TensorView y,
                    TensorView y_h) const {
    RnnCall call(attributes, 1);
    if (Status s = call.Init(x, w, r, b, lengths, {{"initial_h", initial_h}}, y, {{"y_h", y_h}}); !s.ok())
      return s;
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(call, initial_h, y_h); });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const { return DeclareBuffers(sizes, attributes, 1, 1, -1); }

 private:
  template <typename T>
  Status Run(const RnnCall& call, const std::optional<TensorView>& initial_h, TensorView y_h) const {
    Buffers<T> buffers;
    if (Status s = buffers.Make(call); !s.ok()) return s;
    const std::int64_t hidden = call.hidden();
    for (int d = 0; d < attributes.directions; ++d) {
      const GateFunction& f = attributes.FunctionsOf(d)[0];
      const T* bias = call.Biases<T>(d);
      if (Status s = call.LoadState(initial_h, d, buffers.hidden); !s.ok()) return s;
      Pace pace;
      const auto step = [&](std::int64_t t) -> Status {
        Status s = call.MultiplyState(buffers.hidden, call.Recurrence<T>(d), hidden,
                                      bias == nullptr ? nullptr : bias + hidden, buffers.sums, buffers.gemm);
        for (std::int64_t b = 0; s.ok() && b < call.batch(); ++b) {
          if (!pace.Spend(1)) return Stopped();
          if (t >= call.LengthOf(b)) continue;
          if (!pace.Spend(Times(8, hidden))) return Stopped();
          const T* input = buffers.inputs + call.RowOf(call.TimeOf(d, t, b), b) * hidden;
          const T* sum = buffers.sums + b * hidden;
          T* state = buffers.hidden + b * hidden;
          ForUnits(hidden, [=](std::int64_t j) { state[j] = input[j] + sum[j]; });
          RunClippedGate(attributes, f, state, hidden);
        }
        return s;
      };
      if (Status s = RunSteps<T>(call, d, buffers, step); !s.ok()) return s;
      if (Status s = call.StoreState(y_h, d, buffers.hidden); !s.ok()) return s;
    }
    return Status();
  }
};

struct Gru {
  static constexpr const char* kName = names::kGru;
  RnnAttributes attributes;
  bool linear_before_reset = false;
  static Status Make(Attributes& given, Gru* gru) {
    gru->linear_before_reset = given.Bool("linear_before_reset", false);
    return gru->attributes.Read(given, {GateFunction::kSigmoid, GateFunction::kTanh});
  }

  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h, TensorView y,
                    TensorView y_h) const {
    RnnCall call(attributes, 3);
    if (Status s = call.Init(x, w, r, b, lengths, {{"initial_h", initial_h}}, y, {{"y_h", y_h}}); !s.ok())
      return s;
    // The candidate is multiplied by itself, so its columns must begin a panel.
    if (attributes.packed && !linear_before_reset && 2 * call.hidden() % kPanelWidth != 0)
      return ValueError("hidden_size is ", call.hidden(), ", expected a multiple of 16 with packed weights");
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(call, initial_h, y_h); });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    return DeclareBuffers(sizes, attributes, 3, linear_before_reset ? 3 : 2, -1);
  }

 private:
  template <typename T>
  Status Run(const RnnCall& call, const std::optional<TensorView>& initial_h, TensorView y_h) const {
    Buffers<T> buffers;
    if (Status s = buffers.Make(call); !s.ok()) return s;
    for (int d = 0; d < attributes.directions; ++d) {
      if (Status s = call.LoadState(initial_h, d, buffers.hidden); !s.ok()) return s;
      if constexpr (std::is_same_v<T, float>) {
        if (attributes.packed && IsUsual(d)) {
          Status s = RunUsual(call, d, 3, BestRecurrentCells().gru, buffers, nullptr);
          if (s.ok()) s = call.StoreState(y_h, d, buffers.hidden);
          if (!s.ok()) return s;
          continue;
        }
      }
      Pace pace;
      const auto step = [&](std::int64_t t) { return Step(call, d, t, buffers, pace); };
      if (Status s = RunSteps<T>(call, d, buffers, step); !s.ok()) return s;
      if (Status s = call.StoreState(y_h, d, buffers.hidden); !s.ok()) return s;
    }
    return Status();
  }

  bool IsUsual(int direction) const {
    const GateFunction* functions = attributes.FunctionsOf(direction);
    return linear_before_reset && attributes.clip == 0 && functions[0].kind == GateFunction::kSigmoid &&
           functions[1].kind == GateFunction::kTanh;
  }

  // The gates z (update), r (reset) and h (candidate), in this order in w, r and b.
  template <typename T>
  Status Step(const RnnCall& call, int d, std::int64_t t, Buffers<T>& buffers, Pace& pace) const {
    const std::int64_t hidden = call.hidden();
    const std::int64_t width = 3 * hidden;
    const T* r = call.Recurrence<T>(d);
    const T* bias = call.Biases<T>(d);
    const T* r_bias = bias == nullptr ? nullptr : bias + width;
    const GateFunction* functions = attributes.FunctionsOf(d);
    const std::int64_t rows = linear_before_reset ? width : 2 * hidden;
    if (Status s = call.MultiplyState(buffers.hidden, r, rows, r_bias, buffers.sums, buffers.gemm); !s.ok())
      return s;
    T* update = buffers.cell;
    for (std::int64_t b = 0; b < call.batch(); ++b) {
      if (!pace.Spend(1)) return Stopped();
      if (t >= call.LengthOf(b)) continue;
      if (!pace.Spend(Times(16, hidden))) return Stopped();
      const T* input = buffers.inputs + call.RowOf(call.TimeOf(d, t, b), b) * width;
      T* sum = buffers.sums + b * rows;
      T* state = buffers.hidden + b * hidden;
      if constexpr (std::is_same_v<T, float>) {
        if (IsUsual(d)) {
          BestRecurrentCells().gru({sum, input, hidden, hidden, nullptr, state, state});
          continue;
        }
      }
      ForUnits(2 * hidden, [=](std::int64_t j) { sum[j] += input[j]; });
      RunClippedGate(attributes, functions[0], sum, 2 * hidden);
      const T* reset = sum + hidden;
      if (linear_before_reset) {
        const T* more = input + 2 * hidden;
        T* candidate = sum + 2 * hidden;
        ForUnits(hidden, [=](std::int64_t j) { candidate[j] = more[j] + reset[j] * candidate[j]; });
        RunClippedGate(attributes, functions[1], candidate, hidden);
        Mix(sum, candidate, hidden, state);
      } else {
        T *of_update = update + b * hidden, *passed = buffers.reset + b * hidden;
        ForUnits(hidden, [=](std::int64_t j) {
          of_update[j] = sum[j];
          passed[j] = reset[j] * state[j];
        });
      }
    }
    return linear_before_reset ? Status() : Finish(call, d, t, buffers, pace);
  }

  // The candidate from the state that the reset gate has let through.
  template <typename T>
  Status Finish(const RnnCall& call, int d, std::int64_t t, Buffers<T>& buffers, Pace& pace) const {
    const std::int64_t hidden = call.hidden();
    const T* bias = call.Biases<T>(d);
    for (std::int64_t b = 0; b < call.batch(); ++b) {
      if (!pace.Spend(1)) return Stopped();
      if (t >= call.LengthOf(b) && !pace.Fill(buffers.reset + b * hidden, hidden, T{0})) return Stopped();
    }
    Status s = call.MultiplyState(buffers.reset, call.Recurrence<T>(d) + 2 * hidden * hidden, hidden,
                                  bias == nullptr ? nullptr : bias + 5 * hidden, buffers.sums, buffers.gemm);
    for (std::int64_t b = 0; s.ok() && b < call.batch(); ++b) {
      if (!pace.Spend(1)) return Stopped();
      if (t >= call.LengthOf(b)) continue;
      if (!pace.Spend(Times(8, hidden))) return Stopped();
      const T* input = buffers.inputs + (call.RowOf(call.TimeOf(d, t, b), b) * 3 + 2) * hidden;
      T* candidate = buffers.sums + b * hidden;
      ForUnits(hidden, [=](std::int64_t j) { candidate[j] += input[j]; });
      RunClippedGate(attributes, attributes.FunctionsOf(d)[1], candidate, hidden);
      Mix(buffers.cell + b * hidden, candidate, hidden, buffers.hidden + b * hidden);
    }
    return s;
  }

  template <typename T>
  static void Mix(const T* update, const T* candidate, std::int64_t hidden, T* state) {
    ForUnits(hidden,
             [=](std::int64_t j) { state[j] = (1 - update[j]) * candidate[j] + update[j] * state[j]; });
  }
};

struct Lstm {
  static constexpr const char* kName = names::kLstm;
  LstmLayer layer;
  static Status Make(Attributes& given, Lstm* lstm) { return lstm->layer.Read(given); }

  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h,
                    std::optional<TensorView> initial_c, std::optional<TensorView> peepholes, TensorView y,
                    TensorView y_h, TensorView y_c) const {
    RnnCall call(layer.attributes, 4);
    return layer.Run(call, x, w, r, b, lengths, y, {initial_h, initial_c, peepholes, y_h, y_c});
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    return DeclareBuffers(sizes, layer.attributes, 4, 4, -2);
  }
};

constexpr const char kRecurrentAttributes[] =
    "hidden_size = r's, direction = forward, reverse or bidirectional, layout = 0, packed = 0 (1: w and r "
    "are f32, each direction "
    "packed by rewire.packed.pack in order OI, one behind the other; without w, x [.., .., gates * "
    "hidden_size] has the products with it and their bias already, for one direction), clip = 0.0 (none), "
    "activations = "
    "ONNX's default (names joined by commas), activation_alpha, activation_beta = lists of floats";

}  // namespace

std::span<const Kernel> RecurrentKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Rnn>("x, w?, r, b?, sequence_lens?, initial_h? -> out_y, out_h over initial_h",
                    "f32 f64; sequence_lens i32", kRecurrentAttributes,
                    "ONNX RNN; out_y without elements is not wanted"),
      Describe<Gru>("x, w?, r, b?, sequence_lens?, initial_h? -> out_y, out_h over initial_h",
                    "f32 f64; sequence_lens i32", "as rewire.rnn, linear_before_reset = 0",
                    "ONNX GRU; out_y without elements is not wanted"),
      Describe<Lstm>("x, w?, r, b?, sequence_lens?, initial_h?, initial_c?, p? -> out_y, out_h over "
                     "initial_h, out_c over initial_c",
                     "f32 f64; sequence_lens i32", "as rewire.rnn, input_forget = 0",
                     "ONNX LSTM; out_y without elements is not wanted"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
