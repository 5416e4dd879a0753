// SPDX-License-Identifier: Apache-2.0
//
// Computes attention for one query, with the vectors of the CPU that the process runs on.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

struct AttentionRows {
  // scores[j] = factor * sum over d of query[d] * keys[j * step + d], for j < count and d < size.
  void (*scores)(const float* query, const float* keys, std::int64_t count, std::int64_t size,
                 std::int64_t step, float factor, float* scores);
  // The same for four queries: scores[j * width + i] of query i.
  void (*four)(const float* const* queries, const float* keys, std::int64_t count, std::int64_t size,
               std::int64_t step, float factor, float* scores, std::int64_t width);
  // to[d] = to[d] * keep + sum over j of weights[j] * values[j * step + d], for d < size.
  void (*add_values)(const float* weights, const float* values, std::int64_t count, std::int64_t size,
                     std::int64_t step, float keep, float* to);
};

// The functions for the best instruction set that this CPU and the build support.
AttentionRows ChooseAttentionRows();

// The same, chosen once per process.
const AttentionRows& BestAttentionRows();

}  // namespace rewire::kernel::cpu
