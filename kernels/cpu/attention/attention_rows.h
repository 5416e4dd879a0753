// SPDX-License-Identifier: Apache-2.0
//
// What attention computes for one query, with the vectors of the CPU that the process runs on.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

struct AttentionRows {
  // scores[j] = factor * sum over d of query[d] * keys[j * size + d], for j < count.
  void (*scores)(const float* query, const float* keys, std::int64_t count, std::int64_t size, float factor,
                 float* scores);
  // to[d] = to[d] * keep + sum over j of weights[j] * values[j * size + d], for d < size.
  void (*add_values)(const float* weights, const float* values, std::int64_t count, std::int64_t size,
                     float keep, float* to);
  // Turns a matrix [rows, columns] into [columns, step]: to[j * step + i] = from[i * columns + j]. Elements
  // behind the rows stay as they are.
  void (*turn)(const float* from, std::int64_t rows, std::int64_t columns, float* to, std::int64_t step);
};

// The functions for the best instruction set that this CPU and the build support.
AttentionRows ChooseAttentionRows();

// The same, chosen once per process.
const AttentionRows& BestAttentionRows();

}  // namespace rewire::kernel::cpu
