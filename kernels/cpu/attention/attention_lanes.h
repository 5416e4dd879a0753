// SPDX-License-Identifier: Apache-2.0
//
// Computes attention for many queries at once, with the vectors of the CPU that the process runs on. The
// queries lie side by side, each in a lane of its own. So largest scores and sums are vectors, and keys and
// values are read where they are.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// The width of scores is a multiple of this many queries, and at most kMostLanes.
inline constexpr std::int64_t kLaneStep = 16;
inline constexpr std::int64_t kMostLanes = 64;
// The sizes of a matrix of scores.
inline constexpr std::int64_t kMostBlockKeys = 128;
// Lower scores that are finite become this one. So a score by 1 / ln(2) is finite, and a query of which all
// keys are hidden by the lowest number takes all values equally.
inline constexpr float kLowest = -2e38F;

// Scores or weights [keys, width], with step elements from one key to the next.
struct LaneScores {
  float* data;
  std::int64_t keys, width, step;
};

// The sums of each query, for one block of keys after the other.
struct LaneSums {
  alignas(64) float largest[kMostLanes];  // score so far
  alignas(64) float sum[kMostLanes];      // of the weights, which are relative to the largest score
  alignas(64) float keep[kMostLanes];     // what earlier weights and sums of values are to be multiplied by
};

// out[i][d] = factor[i] * (keep[i] * out[i][d] + sum over k of weights[k, i] * values[k * step + d])
struct WeightedValues {
  LaneScores weights;
  std::int64_t rows;  // i < rows
  const float* values;
  std::int64_t step, size;  // d < size
  const float* keep;        // null: out is not read
  const float* factor;      // null: 1
  float* const* out;
};

struct AttentionLanes {
  // to[j * width + i] = factor * from[i][j], for i < rows, j < columns. Lanes behind the rows repeat the
  // first.
  void (*turn)(const float* const* from, std::int64_t rows, std::int64_t columns, float factor, float* to,
               std::int64_t width);
  // Adds terms[j * of_key + i * of_lane] to the score of key j and lane i. of_lane is 0 or 1.
  void (*add)(const float* terms, std::int64_t of_key, std::int64_t of_lane, LaneScores scores);
  // Makes scores `hidden` where seen[j * of_key + i * of_lane] is 0.
  void (*choose)(const float* seen, std::int64_t of_key, std::int64_t of_lane, float hidden,
                 LaneScores scores);
  // to[i] = from[i], for i < count
  void (*widen)(const std::uint8_t* from, std::int64_t count, float* to);
  // Makes scores -inf but for the keys first[i] <= j < last[i].
  void (*hide)(const std::int32_t* first, const std::int32_t* last, LaneScores scores);
  // Turns scores into weights.
  void (*weigh)(LaneScores scores, LaneSums* sums);
  void (*add_values)(const WeightedValues& of);
};

// The functions for the best instruction set that this CPU and the build support.
AttentionLanes ChooseAttentionLanes();

// The same, chosen once per process.
const AttentionLanes& BestAttentionLanes();

}  // namespace rewire::kernel::cpu
