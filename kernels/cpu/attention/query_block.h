// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot product attention of some queries without a matrix of scores. The keys go by in blocks. For each
// query there are the largest score so far, the sum of the exponentials relative to it, and the values added
// up with these as weights. A larger score scales both down.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/attention/attention_lanes.h"
#include "rewire/kernels/cpu/attention/attention_rows.h"
#include "rewire/kernels/cpu/attention/attention_shapes.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// An AttentionCall is all that one call computes with, once its arguments are checked.
struct AttentionCall : AttentionShapes {
  const float *q, *k, *v;
  const std::int64_t *begin, *lengths;  // null: none
  std::int64_t begin_step, lengths_step;
  const float* bias;         // null: none
  const std::uint8_t* mask;  // null: none
  float hidden;              // the score where the mask is 0
  float scale, softcap;
  std::int64_t left, right;
  float* out;
};

struct KeyRange {
  std::int64_t first = 0, last = 0;
};

// Queries that share a head of keys: the rows [first, first + rows) of heads / groups * length, heads
// outermost. At most kMostLanes rows.
class QueryBlock {
 public:
  // The elements of queries that are turned into lanes.
  static constexpr std::int64_t kMostElements = 512 * kMostLanes;

  QueryBlock(const AttentionCall& call, std::int64_t b, std::int64_t group, std::int64_t first,
             std::int64_t rows);

  // Stops early when `pace` says so.
  void Run(Pace& pace);

 private:
  struct Row {
    const float *query, *bias;
    const std::uint8_t* mask;
    KeyRange range;
  };

  const float* KeyAt(std::int64_t j) const { return keys_ + j * key_step_; }
  const float* ValueAt(std::int64_t j) const { return values_ + j * value_step_; }
  std::int64_t WorkOf(std::int64_t keys, std::int64_t rows, std::int64_t side_by_side) const {
    return Times(Times(keys, rows), Plus(call_.size, call_.value_size)) / side_by_side + 16;
  }

  // One row, or all of them side by side.
  bool RunRow(std::int64_t r, Pace& pace);
  void Cap(float* scores, std::int64_t count) const;
  bool RunLanes(KeyRange all, Pace& pace);
  // Both take the keys from `first` on.
  bool MultiplyKeys(std::int64_t first, const float* queries, LaneScores scores, Pace& pace) const;
  bool MultiplyFew(std::int64_t first, LaneScores scores, Pace& pace) const;
  void AddBias(std::int64_t first, LaneScores scores) const;
  void ApplyMask(std::int64_t first, LaneScores scores) const;
  void HideKeys(std::int64_t first, LaneScores scores) const;

  const AttentionCall& call_;
  std::int64_t rows_, width_;
  const float *keys_, *values_;
  std::int64_t key_step_, value_step_;
  bool same_bias_ = true, same_mask_ = true;  // for all rows
  const VectorMath& math_ = BestVectorMath();
  const AttentionRows& of_rows_ = BestAttentionRows();
  const AttentionLanes& of_lanes_ = BestAttentionLanes();
  const PanelKernel& panel_kernel_ = BestPanelKernel();
  Row row_[kMostLanes];
  float* out_[kMostLanes];
};

}  // namespace rewire::kernel::cpu
