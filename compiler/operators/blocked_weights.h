// SPDX-License-Identifier: Apache-2.0
//
// Products by weights of few bits with scales for blocks of rows, which stay packed (rewire.blocked.matmul).
#pragma once

#include <cstdint>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// Weights as com.microsoft's MatMulNBits has them: `columns` columns of `depth` rows, in blocks.
struct BlockedWeights {
  Value* codes = nullptr;
  Value* scales = nullptr;
  Value* zeros = nullptr;  // null: the middle code
  std::int64_t columns = 0, depth = 0, block = 0, bits = 0;
};

// True if the kernel takes x and the weights: constants, of floats no wider than f32, in whole blocks.
bool TakesBlockedWeights(const Value& x, const BlockedWeights& weights);

// x by the weights, plus the bias, which may be null. The weights are packed when the model is compiled, once
// for all products by them. With `bytes` the kernel also rounds x to 8 bits, block by block.
Value* MultiplyBlocked(Op& op, Value* x, const BlockedWeights& weights, Value* bias, bool bytes);

}  // namespace rewire::compiler
