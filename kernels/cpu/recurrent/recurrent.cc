// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers. One product with the inputs of all steps comes first. Then each step has one product with
// the state.
#include <algorithm>

#include "rewire/kernels/cpu/product/gemm_workspace.h"
#include "rewire/kernels/cpu/recurrent/rnn.h"
#include "rewire/kernels/cpu/recurrent/unit_cells.h"
#include "rewire/kernels/cpu/recurrent/unit_steps.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

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
bool DeclareBuffers(WorkspaceSizes& sizes, const RnnAttributes& attributes, std::int64_t gates,
                    std::int64_t step_gates, std::int32_t last_state) {
  const DLTensor *x = sizes.Tensor(0, 3), *r = sizes.Tensor(2, 1), *state = sizes.Tensor(last_state, 3);
  if (x == nullptr || r == nullptr || state == nullptr) return false;
  const std::int64_t hidden = LastDim(r);
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
Status RunUsual(const RnnCall& call, int direction, std::int64_t gates, RecurrentCell cell,
                Buffers<float>& buffers, float* cells, const float* peepholes = nullptr) {
  Status s = call.InputSums<float>(direction, buffers.input_sums, buffers.gemm, &buffers.inputs);
  if (!s.ok()) return s;
  return RunUnitSteps({call, direction, gates, cell, buffers.inputs, buffers.sums, buffers.hidden, cells,
                       buffers.reset, peepholes});
}

struct Rnn {
  static constexpr const char kName[] = "rewire.rnn";
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
          T* state = buffers.hidden + b * hidden;
          for (std::int64_t j = 0; j < hidden; ++j)
            state[j] = f(attributes.Clip(input[j] + buffers.sums[b * hidden + j]));
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
  static constexpr const char kName[] = "rewire.gru";
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
      const T* sum = buffers.sums + b * rows;
      T* state = buffers.hidden + b * hidden;
      if constexpr (std::is_same_v<T, float>) {
        if (IsUsual(d)) {
          BestRecurrentCells().gru({sum, input, hidden, hidden, nullptr, state, state});
          continue;
        }
      }
      for (std::int64_t j = 0; j < hidden; ++j) {
        const T z = functions[0](attributes.Clip(input[j] + sum[j]));
        const T reset = functions[0](attributes.Clip(input[hidden + j] + sum[hidden + j]));
        if (linear_before_reset) {
          const T h = functions[1](attributes.Clip(input[2 * hidden + j] + reset * sum[2 * hidden + j]));
          state[j] = (1 - z) * h + z * state[j];
        } else {
          update[b * hidden + j] = z;
          buffers.reset[b * hidden + j] = reset * state[j];
        }
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
      T* state = buffers.hidden + b * hidden;
      for (std::int64_t j = 0; j < hidden; ++j) {
        const T z = buffers.cell[b * hidden + j];
        const T h = attributes.FunctionsOf(d)[1](attributes.Clip(input[j] + buffers.sums[b * hidden + j]));
        state[j] = (1 - z) * h + z * state[j];
      }
    }
    return s;
  }
};

struct Lstm {
  static constexpr const char kName[] = "rewire.lstm";
  RnnAttributes attributes;
  bool input_forget = false;
  static Status Make(Attributes& given, Lstm* lstm) {
    lstm->input_forget = given.Bool("input_forget", false);
    return lstm->attributes.Read(given, {GateFunction::kSigmoid, GateFunction::kTanh, GateFunction::kTanh});
  }

  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h,
                    std::optional<TensorView> initial_c, std::optional<TensorView> peepholes, TensorView y,
                    TensorView y_h, TensorView y_c) const {
    RnnCall call(attributes, 4);
    Status s = call.Init(x, w, r, b, lengths, {{"initial_h", initial_h}, {"initial_c", initial_c}}, y,
                         {{"y_h", y_h}, {"y_c", y_c}});
    if (!s.ok()) return s;
    if (s = CheckNoOverlap("y_h", y_h, "y_c", y_c); !s.ok()) return s;
    if (IsGiven(peepholes)) {
      const std::int64_t shape[] = {attributes.directions, 3 * call.hidden()};
      Checks checks;
      checks.Dense("p", *peepholes)
          .SameDType("p", *peepholes, "x", x)
          .Shape("p", *peepholes, ShapeView(shape, 2));
      if (s = checks.Take(); !s.ok()) return s;
    }
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* p = IsGiven(peepholes) ? peepholes->data<T>() : nullptr;
      return Run<T>(call, initial_h, initial_c, p, y_h, y_c);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const { return DeclareBuffers(sizes, attributes, 4, 4, -2); }

 private:
  template <typename T>
  Status Run(const RnnCall& call, const std::optional<TensorView>& initial_h,
             const std::optional<TensorView>& initial_c, const T* peepholes, TensorView y_h,
             TensorView y_c) const {
    Buffers<T> buffers;
    if (Status s = buffers.Make(call); !s.ok()) return s;
    const std::int64_t width = call.width();
    for (int d = 0; d < attributes.directions; ++d) {
      const T* bias = call.Biases<T>(d);
      const T* p = peepholes == nullptr ? nullptr : peepholes + d * 3 * call.hidden();
      if (Status s = call.LoadState(initial_h, d, buffers.hidden); !s.ok()) return s;
      if (Status s = call.LoadState(initial_c, d, buffers.cell); !s.ok()) return s;
      Pace pace;
      if constexpr (std::is_same_v<T, float>) {
        if (attributes.packed && IsUsual(attributes.FunctionsOf(d))) {
          Status s = RunUsual(call, d, 4, BestRecurrentCells().lstm, buffers, buffers.cell, p);
          if (s.ok()) s = call.StoreState(y_h, d, buffers.hidden);
          if (s.ok()) s = call.StoreState(y_c, d, buffers.cell);
          if (!s.ok()) return s;
          continue;
        }
      }
      const auto step = [&](std::int64_t t) -> Status {
        Status s = call.MultiplyState(buffers.hidden, call.Recurrence<T>(d), width,
                                      bias == nullptr ? nullptr : bias + width, buffers.sums, buffers.gemm);
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
      if (Status s = RunSteps<T>(call, d, buffers, step); !s.ok()) return s;
      if (Status s = call.StoreState(y_h, d, buffers.hidden); !s.ok()) return s;
      if (Status s = call.StoreState(y_c, d, buffers.cell); !s.ok()) return s;
    }
    return Status();
  }

  bool IsUsual(const GateFunction* functions) const {
    return !input_forget && attributes.clip == 0 && functions[0].kind == GateFunction::kSigmoid &&
           functions[1].kind == GateFunction::kTanh && functions[2].kind == GateFunction::kTanh;
  }

  // The gates i (input), o (output), f (forget) and c (candidate), in this order; peepholes i, o, f.
  template <typename T>
  void Cell(const RnnCall& call, int d, const T* input, const T* sum, const T* p, T* state, T* cell) const {
    const std::int64_t n = call.hidden();
    const GateFunction* functions = attributes.FunctionsOf(d);
    if constexpr (std::is_same_v<T, float>) {
      if (IsUsual(functions)) return BestRecurrentCells().lstm({sum, input, n, n, cell, state, state, p});
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const auto gate = [&](std::int64_t k, std::int64_t peephole, T seen) {
        const T total =
            input[k * n + j] + sum[k * n + j] + (p == nullptr ? T{0} : p[peephole * n + j] * seen);
        return functions[0](attributes.Clip(total));
      };
      const T in = gate(0, 0, cell[j]);
      const T forget = input_forget ? 1 - in : gate(2, 2, cell[j]);
      const T candidate = functions[1](attributes.Clip(input[3 * n + j] + sum[3 * n + j]));
      cell[j] = forget * cell[j] + in * candidate;
      state[j] = gate(1, 1, cell[j]) * functions[2](cell[j]);
    }
  }
};

constexpr const char kAttributes[] =
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
                    "f32 f64; sequence_lens i32", kAttributes,
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
