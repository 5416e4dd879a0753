// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of recurrent layers, and the shapes of their tensors.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/contract/work_rule.h"

namespace rewire::names {

// Recurrent layers.
inline constexpr char kRnn[] = "rewire.rnn";
inline constexpr char kGru[] = "rewire.gru";
inline constexpr char kLstm[] = "rewire.lstm";

// LSTM by weights of 8 bits.
inline constexpr char kLstmBytes[] = "rewire.lstm_bytes";

// Layers of ONNX's form, with weights W and R of floats.
constexpr bool IsRecurrentLayer(std::string_view kernel) {
  return kernel == kRnn || kernel == kGru || kernel == kLstm;
}

// The rows of weights for each unit of such a layer.
constexpr std::int64_t GatesOf(std::string_view kernel) {
  if (kernel == kRnn) return 1;
  return kernel == kGru ? 3 : 4;
}

// Linear attention.
inline constexpr char kLinearAttention[] = "rewire.linear_attention";

inline constexpr WorkRule kRecurrentWork[] = {
    // Steps wait for each other, so the products do not tell what a processor could do.
    {.kernel = kRnn, .products = "x[0] * x[1] * (w + r)", .plain_products = "0", .factors = {1, 2}},
    {.kernel = kGru, .products = "x[0] * x[1] * (w + r)", .plain_products = "0", .factors = {1, 2}},
    {.kernel = kLstm, .products = "x[0] * x[1] * (w + r)", .plain_products = "0", .factors = {1, 2}},
    {.kernel = kLstmBytes, .products = "x[0] * x[1] * (w + r)", .plain_products = "0"},
};

}  // namespace rewire::names

namespace rewire::contract {

// The shapes of the tensors of a recurrent layer over x [steps, batch, inputs], or with the batch first over
// x [batch, steps, inputs].
template <typename Size>
struct LayerSizes {
  LayerSizes(const auto& x, const Size& directions, const Size& hidden, std::int64_t gates, bool batch_first)
      : steps(x[batch_first ? 1 : 0]),
        batch(x[batch_first ? 0 : 1]),
        width(Times(Size(gates), hidden)),
        w{directions, width, x[2]},
        r{directions, width, hidden},
        b{directions, Times(Size(2), width)},
        peepholes{directions, Times(Size(3), hidden)},
        y{batch_first ? batch : steps, batch_first ? steps : directions, batch_first ? directions : batch,
          hidden},
        state{batch_first ? batch : directions, batch_first ? directions : batch, hidden} {}

  Size steps, batch, width;
  Size w[3], r[3], b[2], peepholes[2], y[4], state[3];
};

}  // namespace rewire::contract
