// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of recurrent layers.
#pragma once

namespace rewire::names {

// Recurrent layers.
inline constexpr char kRnn[] = "rewire.rnn";
inline constexpr char kGru[] = "rewire.gru";
inline constexpr char kLstm[] = "rewire.lstm";

// LSTM by weights of 8 bits.
inline constexpr char kLstmBytes[] = "rewire.lstm_bytes";

// Linear attention.
inline constexpr char kLinearAttention[] = "rewire.linear_attention";

}  // namespace rewire::names
