// SPDX-License-Identifier: Apache-2.0
// Compares a tensor of floats with numbers that were computed in f64.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {

// Each element is within the tolerance of the number, relative to 1 and its magnitude.
inline void CheckClose(const HostTensor& out, const std::vector<double>& expected, double tolerance = 1e-4) {
  const auto values = out.values<float>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::fabs(static_cast<double>(values[i]) - expected[i]) <=
          tolerance * (1 + std::fabs(expected[i]))))
      FAIL("element " << i << " is " << values[i] << ", expected " << expected[i]);
  }
}

}  // namespace rewire::test
