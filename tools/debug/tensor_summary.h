// SPDX-License-Identifier: Apache-2.0
//
// A tensor in half a line: its numbers if it has few, otherwise a picture of them and their range.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

struct TensorSummary {
  std::int64_t count = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  // Figures of the finite elements; 0 if there are none.
  double minimum = 0, maximum = 0, mean = 0;
  // Means of equal parts of the tensor, in order. NaN for a part without finite elements.
  std::vector<double> parts;
};

// True if elements of this dtype have a number: integers, f16, bf16, f32, f64 and bool.
bool HasNumbers(DLDataType dtype);

// The dtype must have numbers. There are at most `most_parts` parts, and no more than elements.
TensorSummary Summarize(const HostTensor& tensor, std::size_t most_parts);

// One character for each number, from the lowest to the highest. A number that is not finite is '!'. Without
// `unicode` the characters are ASCII.
std::string Sparkline(const std::vector<double>& numbers, bool unicode);

// "[1, 2, 3]" for up to eight elements, else "▁▃▅█ min 0 max 1 mean 0.5", then the number of NaN and
// infinite elements if there are any. Text of a dtype without numbers is empty.
std::string SummaryText(const HostTensor& tensor, bool unicode);

}  // namespace rewire::tools
