// SPDX-License-Identifier: Apache-2.0
// The recurrent kernels share these: arguments in either layout, directions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/recurrent/rnn_attributes.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

using NamedTensor = std::pair<const char*, std::optional<TensorView>>;

class RnnCall;

// The products of a layer whose weights are bytes (lstm_bytes.cc). Each has all gates of a direction: sums
// [rows, width] of x or a state [rows, ..], plus `bias` [width] if any.
class ByteWeightProducts {
 public:
  virtual Status MultiplyInputs(const RnnCall& call, int direction, const float* x, std::int64_t rows,
                                const float* bias, float* sums) = 0;
  virtual Status MultiplyState(const RnnCall& call, int direction, const float* state, std::int64_t rows,
                               const float* bias, float* sums) = 0;

 protected:
  ~ByteWeightProducts() = default;
};

// The arguments of one call.
//
// - x [steps, batch, inputs], w [directions, gates * hidden, inputs], r [directions, gates * hidden, hidden].
// - b [directions, 2 * gates * hidden], y [steps, directions, batch, hidden], states [directions, batch,
//   hidden].
// - With the batch first: x [batch, steps, inputs], y [batch, steps, directions, hidden], states [batch,
//   directions, hidden].
// - Without w: x [.., .., gates * hidden] already has the products with w and their bias, for one direction.
// - With `bytes`, w and r are i8 and packed, and it multiplies by them.
class RnnCall {
 public:
  RnnCall(const RnnAttributes& attributes, int gates, ByteWeightProducts* bytes = nullptr)
      : attributes_(attributes), gates_(gates), bytes_(bytes) {}

  // `states` are read and may be missing; `results` are written. A y without elements is not computed.
  Status Init(TensorView x, const std::optional<TensorView>& w, TensorView r,
              const std::optional<TensorView>& b, const std::optional<TensorView>& lengths,
              std::initializer_list<NamedTensor> states, TensorView y,
              std::initializer_list<NamedTensor> results);

  const RnnAttributes& attributes() const { return attributes_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t hidden() const { return hidden_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t width() const { return Times(gates_, hidden_); }
  bool has_byte_weights() const { return bytes_ != nullptr; }
  // The columns of w and r in memory, of one direction.
  std::int64_t stored_width() const { return attributes_.packed ? PackedColumns(width()) : width(); }

  // The number of steps of a batch's sequence, and the time index that its step t reads and writes.
  std::int64_t LengthOf(std::int64_t b) const { return lengths_ != nullptr ? lengths_[b] : steps_; }
  std::int64_t TimeOf(int direction, std::int64_t t, std::int64_t b) const {
    return direction == 1 || attributes_.reversed ? LengthOf(b) - 1 - t : t;
  }
  // The row of x.
  std::int64_t RowOf(std::int64_t time, std::int64_t b) const {
    return attributes_.batch_first ? b * steps_ + time : time * batch_ + b;
  }
  std::int64_t StateOffset(int direction, std::int64_t b) const {
    return (attributes_.batch_first ? b * attributes_.directions + direction : direction * batch_ + b) *
           hidden_;
  }

  template <typename T>
  const T* Recurrence(int direction) const {
    return r_.data<T>() + direction * stored_width() * hidden_;
  }
  // The biases of w and of r; null if there are none.
  template <typename T>
  const T* Biases(int direction) const {
    return IsGiven(b_) ? b_->data<T>() + direction * 2 * width() : nullptr;
  }
  // state [batch, hidden] from an argument; 0 if it is missing.
  template <typename T>
  Status LoadState(const std::optional<TensorView>& from, int direction, T* state) const {
    if (!IsGiven(from)) return FillAll(state, Times(batch_, hidden_), T{0});
    Pace pace;
    for (std::int64_t b = 0; b < batch_; ++b) {
      if (!pace.Copy(state + b * hidden_, from->data<T>() + StateOffset(direction, b),
                     Times(hidden_, sizeof(T))))
        break;
    }
    return pace.status();
  }
  template <typename T>
  Status StoreState(TensorView to, int direction, const T* state) const {
    Pace pace;
    for (std::int64_t b = 0; b < batch_; ++b) {
      if (!pace.Copy(to.data<T>() + StateOffset(direction, b), state + b * hidden_,
                     Times(hidden_, sizeof(T))))
        break;
    }
    return pace.status();
  }
  // [hidden] of y for one batch at one time; null if y is not computed.
  template <typename T>
  T* OutputRow(std::int64_t time, int direction, std::int64_t b) const {
    if (y_.size() == 0) return nullptr;
    const int directions = attributes_.directions;
    const std::int64_t row = attributes_.batch_first ? (b * steps_ + time) * directions + direction
                                                     : (time * directions + direction) * batch_ + b;
    return y_.data<T>() + row * hidden_;
  }
  // StoreOutput writes the part of y for one batch at one time; `state` null writes zeros.
  template <typename T>
  void StoreOutput(std::int64_t time, int direction, std::int64_t b, const T* state) const {
    T* to = OutputRow<T>(time, direction, b);
    if (to == nullptr) return;
    if (state == nullptr)
      std::fill_n(to, hidden_, T{0});
    else
      std::copy_n(state, hidden_, to);
  }

  // The elements that `scratch` must have for InputSums.
  std::int64_t InputScratch() const { return w_ ? Times(steps_, batch_, width()) : 0; }
  // sums [steps * batch, width] = x times w, transposed, plus w's bias. This part does not depend on the
  // state.
  template <typename T>
  Status InputSums(int direction, T* scratch, GemmScratch<T>& gemm, const T** sums) const {
    *sums = x_.data<T>();
    if (!w_) return Status();
    *sums = scratch;
    if constexpr (std::is_same_v<T, float>) {
      if (bytes_ != nullptr)
        return bytes_->MultiplyInputs(*this, direction, x_.data<T>(), Times(steps_, batch_),
                                      Biases<T>(direction), scratch);
    }
    return Multiply(x_.data<T>(), Times(steps_, batch_), inputs_,
                    w_->data<T>() + direction * stored_width() * inputs_, width(), Biases<T>(direction),
                    scratch, gemm);
  }
  // The same of a state [batch, hidden] by all of r, with its bias.
  template <typename T>
  Status StateSums(int direction, const T* state, T* sums, GemmScratch<T>& scratch) const {
    const T* bias = Biases<T>(direction);
    const T* of_r = bias == nullptr ? nullptr : bias + width();
    if constexpr (std::is_same_v<T, float>) {
      if (bytes_ != nullptr) return bytes_->MultiplyState(*this, direction, state, batch_, of_r, sums);
    }
    return MultiplyState(state, Recurrence<T>(direction), width(), of_r, sums, scratch);
  }
  // sums [batch, rows] = state [batch, hidden] times r [rows, hidden], transposed, plus `bias` [rows] if any.
  template <typename T>
  Status MultiplyState(const T* state, const T* r, std::int64_t rows, const T* bias, T* sums,
                       GemmScratch<T>& scratch) const {
    return Multiply(state, batch_, hidden_, r, rows, bias, sums, scratch);
  }

 private:
  Status CopyLengths(TensorView lengths);

  // CheckWeights checks of w or r how it lies, its rank and its type.
  Status CheckWeights(const char* name, TensorView weights, TensorView x) const;

  // out [count, columns] = x [count, depth] times w [columns, depth], transposed, plus bias [columns] if any.
  template <typename T>
  Status Multiply(const T* x, std::int64_t count, std::int64_t depth, const T* w, std::int64_t columns,
                  const T* bias, T* out, GemmScratch<T>& scratch) const {
    if constexpr (std::is_same_v<T, float>) {
      if (attributes_.packed) {
        return MultiplyRows({x, count, depth, w, columns, bias, nullptr, Activation(), out});
      }
    }
    Pace pace;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto fill = [&](std::int64_t j, std::int64_t end) {
        for (; j < end; ++j) out[i * columns + j] = bias == nullptr ? T{0} : bias[j];
      };
      if (!pace.Spend(1) || !pace.For(columns, 1, fill)) return Stopped();
    }
    return Gemm<T>(count, columns, depth, Matrix<T>{x, depth, 1}, Matrix<T>{w, 1, depth}, out, columns,
                   scratch);
  }

  const RnnAttributes& attributes_;
  int gates_;
  ByteWeightProducts* bytes_;
  TensorView x_, r_, y_;
  std::optional<TensorView> w_, b_;
  std::int32_t* lengths_ = nullptr;  // [batch]; null: all have steps_
  std::int64_t steps_ = 0, batch_ = 0, inputs_ = 0, hidden_ = 0;
};

}  // namespace rewire::kernel::cpu
