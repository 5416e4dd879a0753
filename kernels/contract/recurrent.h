// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of recurrent layers.
#pragma once

#include <string_view>

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
