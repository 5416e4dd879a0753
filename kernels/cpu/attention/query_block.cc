// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/attention/query_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rewire::kernel::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kFewRows = 8;    // that are not worth turning
constexpr std::int64_t kRowKeys = 256;  // of a block for a single row

// The keys that query i may see.
KeyRange KeysOf(const AttentionCall& call, std::int64_t b, std::int64_t i) {
  KeyRange range{0, call.visible};
  if (call.lengths != nullptr)
    range.last = std::clamp<std::int64_t>(call.lengths[b * call.lengths_step], 0, call.visible);
  if (call.left < 0 && call.right < 0) return range;
  const std::int64_t begin =
      call.begin == nullptr ? 0 : std::clamp(call.begin[b * call.begin_step], -kMostSize, kMostSize);
  const std::int64_t position = begin + i;
  if (call.left >= 0) range.first = std::max(range.first, position - call.left);
  if (call.right >= 0) range.last = std::min(range.last, position + call.right + 1);
  range.last = std::max(range.last, range.first);
  return range;
}

}  // namespace

QueryBlock::QueryBlock(const AttentionCall& call, std::int64_t b, std::int64_t group, std::int64_t first,
                       std::int64_t rows)
    : call_(call), rows_(rows), width_((rows + kLaneStep - 1) / kLaneStep * kLaneStep) {
  const std::int64_t apart = call.keys_joined ? call.groups : 1;
  const std::int64_t head_of_keys =
      call.keys_joined ? b * call.keys * call.groups + group : (b * call.groups + group) * call.keys;
  key_step_ = apart * call.size;
  value_step_ = apart * call.value_size;
  keys_ = call.k + head_of_keys * call.size;
  values_ = call.v + head_of_keys * call.value_size;
  std::int64_t head = group * (call.heads / call.groups) + first / call.length, query = first % call.length;
  for (std::int64_t r = 0; r < rows; ++r, ++query) {
    if (query == call.length) {
      query = 0;
      ++head;
    }
    const std::int64_t at = call.joined ? (b * call.length + query) * call.heads + head
                                        : (b * call.heads + head) * call.length + query;
    Row& row = row_[r];
    row.query = call.q + at * call.size;
    row.range = KeysOf(call, b, query);
    out_[r] = call.out + at * call.value_size;
    const auto offset = [&](const std::int64_t* strides) {
      return b * strides[0] + head * strides[1] + query * strides[2];
    };
    if (call.bias != nullptr) row.bias = call.bias + offset(call.bias_strides);
    if (call.mask != nullptr) row.mask = call.mask + offset(call.mask_strides);
    same_bias_ = same_bias_ && row.bias == row_[0].bias;
    same_mask_ = same_mask_ && row.mask == row_[0].mask;
  }
}

void QueryBlock::Run(Pace& pace) {
  KeyRange all{call_.keys, 0};
  for (std::int64_t r = 0; r < rows_; ++r) {
    if (row_[r].range.first == row_[r].range.last) continue;
    all.first = std::min(all.first, row_[r].range.first);
    all.last = std::max(all.last, row_[r].range.last);
  }
  if (rows_ > 1 && (rows_ <= kFewRows || Times(call_.size, width_) <= kMostElements) &&
      all.first < all.last) {
    RunLanes(all, pace);
    return;
  }
  for (std::int64_t r = 0; r < rows_; ++r) {
    if (!RunRow(r, pace)) return;
  }
}

bool QueryBlock::RunRow(std::int64_t r, Pace& pace) {
  const Row& row = row_[r];
  float* const out = out_[r];
  std::fill_n(out, call_.value_size, 0.0F);
  float scores[kRowKeys] = {};
  float largest = kNever, sum = 0;
  for (std::int64_t first = row.range.first; first < row.range.last; first += kRowKeys) {
    const std::int64_t count = std::min(kRowKeys, row.range.last - first);
    if (!pace.Spend(WorkOf(count, 1, 4))) return false;
    of_rows_.scores(row.query, KeyAt(first), count, call_.size, key_step_, call_.scale, scores);
    Cap(scores, count);
    if (call_.mask != nullptr) {
      float seen[kRowKeys] = {};
      const std::int64_t stride = call_.mask_strides[3];
      of_lanes_.widen(row.mask + first * stride, stride == 0 ? 1 : count, seen);
      of_lanes_.choose(seen, 0, stride, call_.hidden, {scores, 1, kRowKeys, 0});
    }
    if (call_.bias != nullptr) {
      const std::int64_t stride = call_.bias_strides[3];
      for (std::int64_t j = 0; j < count; ++j) scores[j] += row.bias[(first + j) * stride];
    }
    const float most = math_.largest(scores, count);
    const float before = largest;
    if (most > largest || most != most) largest = most;
    if (largest == kNever) continue;  // no key so far may be seen
    const float keep = std::exp(before - largest);
    sum = sum * keep + math_.shifted_exp(scores, largest, scores, count);
    of_rows_.add_values(scores, ValueAt(first), count, call_.value_size, value_step_, keep, out);
  }
  if (sum != 0) math_.scaled(out, 1 / sum, out, call_.value_size);
  return true;
}

void QueryBlock::Cap(float* scores, std::int64_t count) const {
  if (!(call_.softcap > 0)) return;
  math_.scaled(scores, 1 / call_.softcap, scores, count);
  math_.tanh(scores, scores, count);
  math_.scaled(scores, call_.softcap, scores, count);
}

// The queries, turned, are a panel of a product with the keys.
bool QueryBlock::RunLanes(KeyRange all, Pace& pace) {
  alignas(64) float queries[kMostElements];
  // Rows of 256 bytes would share few sets of the first cache with the values.
  constexpr std::int64_t kApart = kLaneStep;
  alignas(64) float of_scores[kMostBlockKeys * (kMostLanes + kApart)];
  alignas(64) float factors[kMostLanes];
  LaneSums sums;
  const float* rows[kMostLanes];
  std::fill_n(sums.largest, width_, kNever);
  std::fill_n(sums.sum, width_, 0.0F);
  for (std::int64_t r = 0; r < rows_; ++r) rows[r] = row_[r].query;
  const bool few = rows_ <= kFewRows;
  LaneScores scores{of_scores, 0, width_, width_ + kApart};
  // Lanes of no query are computed with, so they need numbers.
  if (few || call_.softcap > 0) std::fill_n(of_scores, kMostBlockKeys * scores.step, 0.0F);
  for (std::int64_t panel = 0; panel < width_ && !few; panel += kPanelWidth) {
    const std::int64_t width = std::min(kPanelWidth, width_ - panel);
    of_lanes_.turn(rows + panel, std::min(width, rows_ - panel), call_.size, call_.scale,
                   queries + panel * call_.size, width);
  }
  WeightedValues values{};
  values.rows = rows_;
  values.step = value_step_;
  values.size = call_.value_size;
  values.out = out_;
  const std::int64_t keys = all.last - all.first;
  const std::int64_t blocks = (keys + kMostBlockKeys - 1) / kMostBlockKeys;
  const std::int64_t of_block =
      ((keys + blocks - 1) / blocks + kMostPanelRows - 1) / kMostPanelRows * kMostPanelRows;
  for (std::int64_t first = all.first; first < all.last; first += of_block) {
    scores.keys = std::min(of_block, all.last - first);
    const bool goes_on = few ? MultiplyFew(first, scores, pace) : MultiplyKeys(first, queries, scores, pace);
    if (!goes_on) return false;
    Cap(of_scores, scores.keys * scores.step);
    if (call_.mask != nullptr) ApplyMask(first, scores);
    if (call_.bias != nullptr) AddBias(first, scores);
    HideKeys(first, scores);
    of_lanes_.weigh(scores, &sums);
    if (first + scores.keys == all.last) {
      for (std::int64_t r = 0; r < rows_; ++r) factors[r] = sums.sum[r] != 0 ? 1 / sums.sum[r] : 1;
      values.factor = factors;
    }
    values.weights = scores;
    values.values = ValueAt(first);
    of_lanes_.add_values(values);
    values.keep = sums.keep;
  }
  return true;
}

bool QueryBlock::MultiplyKeys(std::int64_t first, const float* queries, LaneScores scores, Pace& pace) const {
  const float* pointers[kMostPanelRows];
  PanelTile tile{};
  tile.rows = pointers;
  tile.segments = 1;
  tile.depth = call_.size;
  tile.panel = queries;
  tile.columns = width_;
  tile.step = scores.step;
  for (std::int64_t j = 0; j < scores.keys; j += tile.count) {
    tile.count = RowsOfTile(scores.keys - j, panel_kernel_.rows);
    if (!pace.Spend(WorkOf(tile.count, width_, 16))) return false;
    for (int i = 0; i < tile.count; ++i) pointers[i] = KeyAt(first + j + i);
    tile.out = scores.data + j * scores.step;
    // The keys of the next tile are fetched meanwhile.
    for (std::int64_t i = tile.count; i < std::min(2 * std::int64_t{tile.count}, scores.keys - j); ++i) {
      for (std::int64_t d = 0; d < call_.size; d += 16) __builtin_prefetch(KeyAt(first + j + i) + d);
    }
    panel_kernel_.run(tile);
  }
  return true;
}

// The queries go by fours, the last of them repeated.
bool QueryBlock::MultiplyFew(std::int64_t first, LaneScores scores, Pace& pace) const {
  for (std::int64_t r = 0; r < rows_; r += 4) {
    if (!pace.Spend(WorkOf(scores.keys, 4, 8))) return false;
    const float* queries[4];
    for (std::int64_t i = 0; i < 4; ++i) queries[i] = row_[std::min(r + i, rows_ - 1)].query;
    of_rows_.four(queries, KeyAt(first), scores.keys, call_.size, key_step_, call_.scale, scores.data + r,
                  scores.step);
  }
  return true;
}

void QueryBlock::AddBias(std::int64_t first, LaneScores scores) const {
  const std::int64_t stride = call_.bias_strides[3];
  if (same_bias_) {
    of_lanes_.add(row_[0].bias + first * stride, stride, 0, scores);
    return;
  }
  alignas(64) float terms[kMostBlockKeys * kMostLanes];
  const float* rows[kMostLanes];
  for (std::int64_t r = 0; r < rows_; ++r) rows[r] = row_[r].bias + first * stride;
  of_lanes_.turn(rows, rows_, stride == 0 ? 1 : scores.keys, 1, terms, width_);
  of_lanes_.add(terms, stride * width_, 1, scores);
}

void QueryBlock::ApplyMask(std::int64_t first, LaneScores scores) const {
  const std::int64_t stride = call_.mask_strides[3], count = stride == 0 ? 1 : scores.keys;
  alignas(64) float seen[kMostBlockKeys * kMostLanes];
  if (same_mask_) {
    of_lanes_.widen(row_[0].mask + first * stride, count, seen);
    of_lanes_.choose(seen, stride, 0, call_.hidden, scores);
    return;
  }
  alignas(64) float turned[kMostBlockKeys * kMostLanes];
  const float* rows[kMostLanes];
  for (std::int64_t r = 0; r < rows_; ++r) {
    of_lanes_.widen(row_[r].mask + first * stride, count, seen + r * count);
    rows[r] = seen + r * count;
  }
  of_lanes_.turn(rows, rows_, count, 1, turned, width_);
  of_lanes_.choose(turned, stride * width_, 1, call_.hidden, scores);
}

void QueryBlock::HideKeys(std::int64_t first, LaneScores scores) const {
  std::int32_t from[kMostLanes] = {}, to[kMostLanes] = {};
  const std::int64_t count = scores.keys;
  bool hides = false;
  for (std::int64_t r = 0; r < rows_; ++r) {
    const KeyRange range = row_[r].range;
    from[r] = static_cast<std::int32_t>(std::clamp(range.first - first, std::int64_t{0}, count));
    to[r] = static_cast<std::int32_t>(std::clamp(range.last - first, std::int64_t{0}, count));
    hides = hides || from[r] > 0 || to[r] < count;
  }
  if (hides) of_lanes_.hide(from, to, scores);
}

}  // namespace rewire::kernel::cpu
