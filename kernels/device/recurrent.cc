// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers. One product with the inputs of all steps comes first. Then each step is a launch, for
// both directions at once.
#include <algorithm>
#include <iterator>

#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/cpu/recurrent/rnn_attributes.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cuda_libraries/libraries.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/product_arguments.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

using LayerArguments = ::Recurrent;
using cpu::IsGiven;

// The device code numbers the functions as kernels/cpu does.
static_assert(int{kGateSigmoid} == cpu::GateFunction::kSigmoid);
static_assert(int{kGateHardSigmoid} == cpu::GateFunction::kHardSigmoid);
static_assert(int{kGateSoftplus} == cpu::GateFunction::kSoftplus);

// LayerTensors are a call's arguments. Those that only an LSTM has are missing in the others.
struct LayerTensors {
  TensorView x;
  std::optional<TensorView> w;
  TensorView r;
  std::optional<TensorView> b, lengths, h, c, p;
  TensorView y, y_h;
  std::optional<TensorView> y_c;
};

// A Layer is the part that the three layers share.
struct Layer {
  cpu::RnnAttributes attributes;
  RecurrentKind kind;
  bool linear_before_reset = false;
  bool input_forget = false;

  Status Read(Attributes& given, std::initializer_list<cpu::GateFunction::Kind> defaults) {
    Status read = attributes.Read(given, defaults);
    if (read.ok() && attributes.packed)
      return ValueError("attribute 'packed' is 1: packed weights are left to the CPU");
    return read;
  }
  // `last_state` is the place of out_h, from the end.
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes, std::int32_t last_state) const {
    const DLTensor *x = sizes.Tensor(0, 3), *state = sizes.Tensor(last_state, 3);
    if (x == nullptr || state == nullptr) return false;
    const std::int64_t count = std::max<std::int64_t>(1, DeclaredSize(*state));
    const DLTensor* w = sizes.Tensor(1);
    if (w != nullptr && (DeclaredSize(*w) != 0 || x->shape[2] == 0)) {
      const std::int64_t steps = x->shape[attributes.batch_first ? 1 : 0];
      sizes.Take(std::max<std::int64_t>(1, cpu::Times(steps, cpu::Times(gates(), count))), x->dtype.bits / 8);
      cuda_libraries::DeclareScratch(cuda_libraries::CublasMayWork(), sizes);
    }
    sizes.Take(cpu::Times(kKinds, count), sizeof(float));
    return true;
  }
  std::int64_t gates() const { return kind == kRecurrentRnn ? 1 : kind == kRecurrentGru ? 3 : 4; }

  Status Run(LayerTensors given) const {
    if (!IsGiven(given.w) && given.x.ndim() == 3 && given.x.dim(2) != 0) given.w.reset();
    LayerArguments layer{};
    if (Status s = Check(given, &layer); !s.ok()) return s;
    const std::int64_t count = cpu::Times(layer.directions, cpu::Times(layer.batch, layer.hidden));
    if (count == 0) return Status();
    const std::int64_t width = gates() * layer.hidden;
    const std::int64_t rows = cpu::Times(layer.steps, layer.batch);
    // Without w, x has been multiplied before.
    Scratch products, states;
    TensorView inputs = given.x;
    if (given.w && rows != 0) {
      const std::int64_t size = cpu::Times(layer.directions, cpu::Times(rows, width));
      if (Status s = products.Make(given.x, given.x.dtype(), size); !s.ok()) return s;
      inputs = products.view();
      if (Status s = MultiplyInputs(given, rows, width, layer.directions, inputs); !s.ok()) return s;
    }
    if (Status s = states.Make(given.x, DTypeOf<float>(), cpu::Times(kKinds, count)); !s.ok()) return s;
    const Form form = RealForm(given.x);
    Call start(given.x, Program::kRecurrent, form, "recurrent_start");
    start.Optional(Given(given.h), given.x).Optional(Given(given.c), given.x).Tensor(states.view());
    start.Value(layer).Int(IsGiven(given.h) ? 1 : 0).Int(IsGiven(given.c) ? 1 : 0).Int(count);
    if (Status s = start.Each(count); !s.ok()) return s;
    const int parts = kind == kRecurrentGru && !linear_before_reset ? 2 : 1;
    for (std::int64_t step = 0; step < layer.steps; ++step) {
      if (__rewire_kernel_api->cancelled() != 0) return cpu::Stopped();
      for (int part = 0; part < parts; ++part) {
        if (Status s = Step(given, layer, inputs, states.view(), count, step, part); !s.ok()) return s;
      }
    }
    Call end(given.x, Program::kRecurrent, form, "recurrent_end");
    end.Tensor(states.view()).Tensor(given.y_h).Optional(given.y_c, given.y_h).Value(layer);
    return end.Int(given.y_c ? 1 : 0).Int(count).Each(count);
  }

 private:
  // As many units of each kind as `code/recurrent.h` says.
  static constexpr std::int64_t kKinds = 5;

  // One direction's shape of a state, and so on: see kernels/cpu/recurrent/rnn.h.
  Status Check(const LayerTensors& given, LayerArguments* layer) const {
    const TensorView x = given.x, r = given.r, y = given.y;
    DeviceChecks checks;
    checks.On("x", x).Beside("r", r, x).Real("x", x).SameDType("r", r, "x", x).SameDType("y", y, "x", x);
    if (y.size() != 0) checks.Beside("y", y, x);
    if (given.w) checks.Beside("w", *given.w, x).SameDType("w", *given.w, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = cpu::CheckRank("x", x, 3); !s.ok()) return s;
    if (Status s = cpu::CheckRank("r", r, 3); !s.ok()) return s;
    const std::int64_t directions = attributes.directions;
    const std::int64_t hidden = attributes.hidden != 0 ? attributes.hidden : r.dim(2);
    const contract::LayerSizes<std::int64_t> sizes(x.dims(), directions, hidden, gates(),
                                                   attributes.batch_first);
    if (given.w) {
      checks.Shape("w", *given.w, ShapeView(sizes.w, 3));
    } else if (directions != 1 || x.dim(2) != sizes.width) {
      return ValueError("x has ", x.dim(2), " elements a step for ", directions, " directions, expected ",
                        sizes.width, " for one without w");
    }
    checks.Shape("r", r, ShapeView(sizes.r, 3));
    if (y.size() != 0) checks.Shape("y", y, ShapeView(sizes.y, 4));
    const auto real = [&](const char* what, const std::optional<TensorView>& tensor, ShapeView shape) {
      if (!IsGiven(tensor)) return;
      checks.Beside(what, *tensor, x).SameDType(what, *tensor, "x", x).Shape(what, *tensor, shape);
    };
    real("b", given.b, ShapeView(sizes.b, 2));
    real("p", given.p, ShapeView(sizes.peepholes, 2));
    real("initial_h", given.h, ShapeView(sizes.state, 3));
    real("initial_c", given.c, ShapeView(sizes.state, 3));
    for (const auto& [what, tensor] :
         {std::pair("y_h", std::optional(given.y_h)), std::pair("y_c", given.y_c)}) {
      if (!tensor) continue;
      checks.Shape(what, *tensor, ShapeView(sizes.state, 3));
      real(what, tensor, ShapeView(sizes.state, 3));
    }
    if (IsGiven(given.lengths)) {
      checks.Beside("sequence_lens", *given.lengths, x)
          .Shape("sequence_lens", *given.lengths, ShapeView(&sizes.batch, 1));
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    if (IsGiven(given.lengths) && !given.lengths->Is<std::int32_t>())
      return TypeError("sequence_lens is ", DTypeName(given.lengths->dtype()), ", expected i32");
    // Positions in what the inputs contribute are computed in 32 bits.
    if (cpu::Times(cpu::Times(sizes.steps, sizes.batch), cpu::Times(directions, sizes.width)) > kMostElements)
      return ValueError("x has shape ", x.dims(), ", whose products with ", sizes.width,
                        " columns are too many");
    layer->kind = kind;
    layer->steps = static_cast<int>(sizes.steps);
    layer->batch = static_cast<int>(sizes.batch);
    layer->hidden = static_cast<int>(hidden);
    layer->directions = static_cast<int>(directions);
    layer->reversed = attributes.reversed ? 1 : 0;
    layer->batch_first = attributes.batch_first ? 1 : 0;
    layer->has_bias = IsGiven(given.b) ? 1 : 0;
    layer->has_peepholes = IsGiven(given.p) ? 1 : 0;
    layer->has_lengths = IsGiven(given.lengths) ? 1 : 0;
    layer->has_y = y.size() != 0 ? 1 : 0;
    layer->input_forget = input_forget ? 1 : 0;
    layer->linear_before_reset = linear_before_reset ? 1 : 0;
    layer->clip = static_cast<float>(attributes.clip);
    const std::size_t functions = attributes.functions.size() / static_cast<std::size_t>(directions);
    for (int d = 0; d < attributes.directions; ++d) {
      for (std::size_t i = 0; i < functions; ++i) {
        const cpu::GateFunction& function = attributes.FunctionsOf(d)[i];
        layer->functions[d][i] = {function.kind, static_cast<float>(function.alpha),
                                  static_cast<float>(function.beta)};
      }
    }
    return Status();
  }

  // out [directions, rows, width] = x [rows, inputs] times each direction's w [width, inputs], transposed,
  // plus w's bias.
  static Status MultiplyInputs(const LayerTensors& given, std::int64_t rows, std::int64_t width,
                               int directions, TensorView out) {
    const auto inputs = static_cast<int>(given.x.dim(2));
    ProductArguments product{};
    product.m = static_cast<int>(rows);
    product.n = static_cast<int>(width);
    product.k = inputs;
    product.rows = product.m;
    product.a_row = inputs;
    product.a_column = 1;
    product.b_row = 1;
    product.b_column = inputs;
    product.rank = 1;
    product.dims[0] = directions;
    product.b_batch[0] = static_cast<int>(width) * inputs;
    product.alpha = 1;
    product.beta = 1;
    product.has_c = IsGiven(given.b) ? 1 : 0;
    product.c_column = 1;
    product.c_batch = static_cast<int>(2 * width);
    return RunProduct(given.x, *given.w, Given(given.b), out, product, directions);
  }

  static Status Step(const LayerTensors& given, const LayerArguments& layer, TensorView inputs,
                     TensorView states, std::int64_t count, std::int64_t step, int part) {
    constexpr std::int64_t kUnits = 4;  // of a group
    Call call(given.x, Program::kRecurrent, RealForm(given.x), "recurrent_step");
    call.Tensor(inputs).Tensor(given.r).Optional(Given(given.b), given.r).Optional(Given(given.p), given.r);
    call.Optional(Given(given.lengths), given.r).Tensor(states);
    call.Tensor(layer.has_y != 0 ? given.y : given.y_h).Value(layer).Int(step).Int(part);
    return call.Rows((count + kUnits - 1) / kUnits);
  }
};

struct Rnn {
  static constexpr const char* kName = names::kOnDevice<names::kRnn>;
  Layer layer{{}, kRecurrentRnn};
  static Status Make(Attributes& given, Rnn* rnn) {
    return rnn->layer.Read(given, {cpu::GateFunction::kTanh});
  }
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const { return layer.DeclareWorkspace(sizes, -1); }
  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h, TensorView y,
                    TensorView y_h) const {
    return layer.Run({x, w, r, b, lengths, initial_h, {}, {}, y, y_h, {}});
  }
};

struct Gru {
  static constexpr const char* kName = names::kOnDevice<names::kGru>;
  Layer layer{{}, kRecurrentGru};
  static Status Make(Attributes& given, Gru* gru) {
    gru->layer.linear_before_reset = given.Bool("linear_before_reset", false);
    return gru->layer.Read(given, {cpu::GateFunction::kSigmoid, cpu::GateFunction::kTanh});
  }
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const { return layer.DeclareWorkspace(sizes, -1); }
  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h, TensorView y,
                    TensorView y_h) const {
    return layer.Run({x, w, r, b, lengths, initial_h, {}, {}, y, y_h, {}});
  }
};

struct Lstm {
  static constexpr const char* kName = names::kOnDevice<names::kLstm>;
  Layer layer{{}, kRecurrentLstm};
  static Status Make(Attributes& given, Lstm* lstm) {
    lstm->layer.input_forget = given.Bool("input_forget", false);
    return lstm->layer.Read(
        given, {cpu::GateFunction::kSigmoid, cpu::GateFunction::kTanh, cpu::GateFunction::kTanh});
  }
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const { return layer.DeclareWorkspace(sizes, -2); }
  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h,
                    std::optional<TensorView> initial_c, std::optional<TensorView> peepholes, TensorView y,
                    TensorView y_h, TensorView y_c) const {
    return layer.Run({x, w, r, b, lengths, initial_h, initial_c, peepholes, y, y_h, y_c});
  }
};

constexpr const char kLayerTypes[] = "f32 f16; sequence_lens i32";
constexpr const char kLayerAttributes[] = "as rewire.rnn, but for packed = 1";

}  // namespace

std::span<const Kernel> RecurrentKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Rnn>("x, w?, r, b?, sequence_lens?, initial_h? -> out_y, out_h", kLayerTypes, kLayerAttributes,
                    "ONNX RNN; out_y without elements is not wanted; states are kept in f32",
                    REWIRE_KERNEL_DEVICE_WORKSPACE),
      Describe<Gru>("x, w?, r, b?, sequence_lens?, initial_h? -> out_y, out_h", kLayerTypes,
                    "as rewire.device.rnn, linear_before_reset = 0", "ONNX GRU, as rewire.device.rnn",
                    REWIRE_KERNEL_DEVICE_WORKSPACE),
      Describe<Lstm>("x, w?, r, b?, sequence_lens?, initial_h?, initial_c?, p? -> out_y, out_h, out_c",
                     kLayerTypes, "as rewire.device.rnn, input_forget = 0", "ONNX LSTM, as rewire.device.rnn",
                     REWIRE_KERNEL_DEVICE_WORKSPACE),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
