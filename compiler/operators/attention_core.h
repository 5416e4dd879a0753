// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot product attention in terms of stock kernels. The attention operators of all domains share it.
#pragma once

#include <functional>
#include <optional>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// The positions of queries and keys say which keys a query may see.
struct PositionMask {
  DimExpr queries, keys;
  Value* offset = nullptr;   // the first query's position: i64, a scalar or [batch, 1, 1, 1]; null: 0
  std::int64_t left = -1;    // how many keys before a query's position it may see; -1: all
  std::int64_t right = -1;   // how many behind it; 0: causal
  Value* lengths = nullptr;  // how many keys there are, i64 [batch, 1, 1, 1]; null: all of them
};

// Tensors of [batch, heads, length, size]. Several heads of q may share one of k and v.
struct AttentionInputs {
  Value* q = nullptr;
  Value* k = nullptr;
  Value* v = nullptr;
  std::optional<double> scale;  // of the scores; without it 1 / sqrt(size)
  double softcap = 0;           // above 0: scores are held within this by tanh
  // The same queries as [batch, length, heads * size], if they are there in this form.
  Value* joined_q = nullptr;
  std::optional<PositionMask> positions;  // which keys a query may see
  // Further keys that a query may see, of bool; null: all. It broadcasts to [batch, heads, length, length of
  // k].
  Value* allowed = nullptr;
  Value* bias = nullptr;  // added to the scores; null: nothing. It broadcasts likewise
  // The dtype in which probabilities are computed, if it is wider than that of the scores.
  std::optional<DLDataType> softmax_dtype;
  // Change the scores before the softmax, and the probabilities after it. Empty: nothing does.
  std::function<Result<Value*>(Value*)> change_scores, change_probabilities;
  bool needs_scores = false;  // something uses more than `y`
};

// All in q's dtype.
struct AttentionOutputs {
  Value* y = nullptr;       // [batch, heads, length, size of v]; null if `joined` is there
  Value* joined = nullptr;  // [batch, length, heads * size of v], if the kernel gives it in this form
  // Null without needs_scores, where the kernel rewire.attention computes all at once.
  Value* scores = nullptr;         // [batch, heads, length, length of k]
  Value* capped = nullptr;         // the scores after the softcap
  Value* biased = nullptr;         // and with the bias, -inf where a key is not allowed
  Value* probabilities = nullptr;  // 0 for a query that may see no key
};

Result<AttentionOutputs> BuildAttention(Op& op, const AttentionInputs& inputs);
// Y as [batch, length, heads * size].
Value* JoinedOf(Op& op, const AttentionOutputs& outputs);

// [batch, length, heads * size] as [batch, heads, length, size], and back.
Result<Value*> SplitHeads(Op& op, Value* x, std::int64_t heads);
Value* JoinHeads(Op& op, Value* x);
// The same where only the run may know how many heads there are. They fill each row of x.
Value* SplitInto(Op& op, Value* x, const DimExpr& heads, const DimExpr& size);

// Rotates pairs of the first `turned` elements of each head: halves, or neighbors if `interleaved`.
struct Rotation {
  // Tables [positions, turned / 2], read at `positions`, i64 [batch, length]. Without positions they are
  // [batch, length, turned / 2].
  Value* cosines = nullptr;
  Value* sines = nullptr;
  Value* positions = nullptr;
  DimExpr turned = 0;
  bool interleaved = false;

  // `apart`, [batch, heads, length, size], is x, or is what SplitHeads makes of x. The result is as x is.
  Value* Of(Op& op, Value* x, Value* apart, std::int64_t heads) const;
};

// A cache [batch, heads, positions, size] with x, of the same heads or [batch, length, heads * size], written
// over the positions from `begin` on, i64 [] or [batch]. The caller may donate the cache.
Value* AppendToCache(Op& op, Value* cache, Value* x, Value* begin);
// The tensors one behind the other along an axis. `a` may be null.
Value* ConcatTo(Op& op, Value* a, Value* b, int axis);
// Elements from `start` to `end` along an axis.
Value* SliceOf(Op& op, Value* x, int axis, const DimExpr& start, const DimExpr& end);
// 0, 1, ... below `count`, of i64[count].
Value* CountTo(Op& op, const DimExpr& count);
// An i64 scalar of a dimension.
Value* DimValue(Op& op, const DimExpr& dim);
// 0 where `allowed` holds, otherwise -inf.
Value* MaskBias(Op& op, Value* allowed, DLDataType dtype);

// Null if each query may see all keys.
Value* AllowedKeys(Op& op, const PositionMask& mask);
// Both conditions; either may be null.
Value* AndOf(Op& op, Value* a, Value* b);

}  // namespace rewire::compiler
