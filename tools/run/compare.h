// SPDX-License-Identifier: Apache-2.0
// Compares an output with what was expected of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

// As numpy.allclose with equal_nan: |given - expected| <= absolute + relative * |expected|; NaN equals NaN,
// an infinity equals itself. Integers and booleans are subtracted exactly.
struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
  bool bits = false;  // in place of both: elements must be equal bit for bit
};

struct Comparison {
  std::string mismatch;  // dtypes or shapes differ, in words; the rest is then empty
  std::int64_t elements = 0;
  std::int64_t different = 0;  // elements outside the tolerance
  // The element with the largest difference, of those outside the tolerance if there are any. `difference` is
  // infinite where only one is NaN. Meaningful when elements > 0.
  struct Worst {
    std::vector<std::int64_t> index;
    std::string expected, given;
    double difference = 0;
  } worst;
  // The largest difference in parts of what is expected, where that is not zero.
  double largest_relative = 0;

  bool equal() const { return mismatch.empty() && different == 0; }
};

// Floats of any size, bfloat16 too.
constexpr bool IsFloat(DLDataType dtype) { return dtype.code == kFloat || dtype.code == kBFloat; }

// The largest absolute value of the elements; NaN and infinities do not count. 0 if they are no floats.
double LargestMagnitude(const HostTensor& tensor);

Comparison Compare(const HostTensor& given, const HostTensor& expected, const Tolerance& tolerance);

// "equals y.npy (largest difference 1e-07 at [3, 4])", "differs from y.npy in 2 of 6 elements; worst at [1,
// 2]: expected 0.5, given 0.75, difference 0.25", or the mismatch.
std::string ComparisonText(const Comparison& comparison, const std::string& expected_name);

}  // namespace rewire::tools
