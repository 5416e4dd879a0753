// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of Fourier transforms. They transform several lines at once, one in each lane of a vector.
// So a line's numbers lie `lanes` apart: number i of all lines is data[2 * i * lanes ...], the real parts
// first.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// One pass of Stockham's transform, which needs no reordering. There are radix * parts * stride numbers.
struct FourierPass {
  const double* from;
  double* to;
  const double* roots;  // all roots of unity, as complex numbers
  double sign;          // of their exponents: 1 or -1
  std::int64_t radix;   // 2, 3, 4 or 5
  std::int64_t parts;
  std::int64_t stride;
  std::int64_t lanes;  // 1, 2, 4 or 8
};

// to(i) = from(i) * factors(i) * scale. If `reversed` is not 0, from(i) is number (reversed - i) % reversed.
struct FourierProduct {
  const double* from;
  const double* factors;  // complex numbers
  double scale;
  double* to;
  std::int64_t reversed;
  std::int64_t lanes;
};

struct FourierSteps {
  std::int64_t lanes;  // the most
  // Positions [begin, end) of the parts * stride.
  void (*pass)(const FourierPass& pass, std::int64_t begin, std::int64_t end);
  void (*multiply)(const FourierProduct& product, std::int64_t begin, std::int64_t end);
  // Pairs of real numbers were transformed as `half` complex numbers. This makes half + 1 bins of them, in
  // place. turns(i) is root i of the 2 * half roots of unity. It does positions [begin, end) of
  // [0, half / 2 + 1), and those opposite.
  void (*separate)(double* data, const double* turns, std::int64_t half, std::int64_t lanes,
                   std::int64_t begin, std::int64_t end);
};

// The steps of the best instruction set that this CPU and the build support.
FourierSteps ChooseFourierSteps();

// The same, chosen once per process.
const FourierSteps& BestFourierSteps();

}  // namespace rewire::kernel::cpu
