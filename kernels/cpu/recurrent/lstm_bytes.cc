// SPDX-License-Identifier: Apache-2.0
//
// An LSTM whose weights stay in 8 bits. Inputs and states become numbers of 16 bits for its products
// (gemm_packed_bytes.h), so the result is that of the float layer by these weights.
#include <optional>

#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/cpu/product/gemm_packed_bytes.h"
#include "rewire/kernels/cpu/product/integer_panels.h"
#include "rewire/kernels/cpu/recurrent/lstm.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

constexpr int kLimbs = 2;

// i8 and packed, all directions one behind the other, with scales [directions, width].
struct Weights {
  std::optional<TensorView> bytes, scales;
};

class Products final : public ByteWeightProducts {
 public:
  Products(const Weights& w, const Weights& r) : w_(w), r_(r) {}

  Status MultiplyInputs(const RnnCall& call, int direction, const float* x, std::int64_t rows,
                        const float* bias, float* sums) override {
    return Multiply(w_, call, direction, x, rows, call.inputs(), bias, sums, &of_inputs_);
  }
  Status MultiplyState(const RnnCall& call, int direction, const float* state, std::int64_t rows,
                       const float* bias, float* sums) override {
    return Multiply(r_, call, direction, state, rows, call.hidden(), bias, sums, &of_state_);
  }

 private:
  static Status Multiply(const Weights& weights, const RnnCall& call, int direction, const float* x,
                         std::int64_t rows, std::int64_t depth, const float* bias, float* sums,
                         RowsByBytesScratch* scratch) {
    const std::int64_t width = call.width(), stored = Times(call.stored_width(), PaddedDepth(depth));
    return MultiplyRowsByBytes(
        {x, rows, depth, weights.bytes->data<std::int8_t>() + direction * stored, width, kLimbs,
         weights.scales->data<float>() + direction * width, bias, nullptr, Activation(), sums},
        scratch);
  }

  Weights w_, r_;
  RowsByBytesScratch of_inputs_, of_state_;
};

struct LstmBytes {
  static constexpr const char* kName = names::kLstmBytes;
  LstmLayer layer;
  static Status Make(Attributes& given, LstmBytes* lstm) {
    given.Require("hidden_size");
    Status s = lstm->layer.Read(given);
    lstm->layer.attributes.packed = true;
    return s;
  }

  Status operator()(TensorView x, std::optional<TensorView> w, TensorView r, std::optional<TensorView> b,
                    std::optional<TensorView> lengths, std::optional<TensorView> initial_h,
                    std::optional<TensorView> initial_c, std::optional<TensorView> w_scale,
                    TensorView r_scale, TensorView y, TensorView y_h, TensorView y_c) const {
    if (!x.Is<float>()) return WrongDType(Types<float>(), "x", x);
    if (IsGiven(w) && !w_scale) return ValueError("w is given without w_scale");
    const std::int64_t shape[] = {layer.attributes.directions, Times(4, layer.attributes.hidden)};
    Checks checks;
    for (const NamedTensor& named : {NamedTensor{"r_scale", r_scale}, {"w_scale", w_scale}}) {
      const auto& [name, scale] = named;
      if (!scale || (name[0] == 'w' && !IsGiven(w))) continue;
      checks.Dense(name, *scale).SameDType(name, *scale, "x", x).Shape(name, *scale, ShapeView(shape, 2));
      for (const auto& [result, written] : {std::pair("y", y), {"y_h", y_h}, {"y_c", y_c}})
        checks.NoOverlap(result, written, name, *scale);
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    Products products({w, w_scale}, {r, r_scale});
    RnnCall call(layer.attributes, 4, &products);
    return layer.Run(call, x, w, r, b, lengths, y, {initial_h, initial_c, std::nullopt, y_h, y_c});
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 3), *state = sizes.Tensor(-2, 3);
    if (x == nullptr || state == nullptr || !DeclareBuffers(sizes, layer.attributes, 4, 4, -2)) return false;
    const DLTensor* w = sizes.Tensor(1);
    if (w != nullptr && SizeOf(w) != 0)
      DeclareRowsByBytes(sizes, Times(x->shape[0], x->shape[1]), x->shape[2], kLimbs);
    DeclareRowsByBytes(sizes, state->shape[layer.attributes.batch_first ? 0 : 1], LastDim(state), kLimbs);
    return true;
  }
};

}  // namespace

std::span<const Kernel> LstmBytesKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<LstmBytes>(
          "x, w?, r, b?, sequence_lens?, initial_h?, initial_c?, w_scale?, r_scale -> "
          "out_y, out_h over initial_h, out_c over initial_c",
          "f32; w, r i8; sequence_lens i32", "as rewire.lstm, hidden_size is required, packed is implied",
          "rewire.lstm without peepholes, by w times w_scale and r times r_scale [directions, 4 * "
          "hidden_size]; w and r "
          "are i8, each direction packed by rewire.packed.pack_integers in order OI, one behind the "
          "other"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
