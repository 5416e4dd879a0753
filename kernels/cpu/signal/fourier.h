// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length, of several lines at once.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// The tables of one length, in the running kernel's workspace; threads may share them. Lengths made of the
// factors 2, 3 and 5 use passes of radix 2 to 5. Other lengths become a circular convolution of the next
// power of two that fits (Bluestein).
class Fourier {
 public:
  // `inverse` changes the sign of the exponent. The result is not scaled. With `pairs`, lines are real
  // numbers: `length`, which is even, of them as length / 2 pairs. Their transform is bins 0 to length / 2.
  Status Init(std::int64_t length, bool inverse, bool pairs, Pace& pace);

  // Declares the workspace that Init takes for a length of at most `most`.
  static void DeclareWorkspace(WorkspaceSizes& sizes, std::int64_t most);
  // The most numbers of a line's buffer for a length of at most `most`.
  static std::int64_t MostNumbers(std::int64_t most);

  // Complex numbers that Run takes for each line in each of two buffers.
  std::int64_t numbers() const { return padded_ + 1; }

  // Transforms `lanes` lines, in the layout of fourier_steps.h. They are in `data`. The result is in `data`
  // or `other`, which is returned. Null if told to stop.
  [[nodiscard]] double* Run(double* data, double* other, std::int64_t lanes, Pace& pace) const;

 private:
  double* RunPasses(double* data, double* other, std::int64_t lanes, Pace& pace) const;
  double* Convolve(double* data, double* other, std::int64_t lanes, Pace& pace) const;
  Status InitChirp(Pace& pace);

  static constexpr int kMostRadices = 64;
  std::int64_t count_ = 0;   // complex numbers of a line
  std::int64_t padded_ = 0;  // the same, or the power of two
  double sign_ = -1;
  int radix_count_ = 0;
  std::int8_t radices_[kMostRadices] = {};
  double* roots_ = nullptr;     // of unity, padded_ of them, as complex numbers
  double* turns_ = nullptr;     // for pairs: the first of 2 * count_ roots
  double* chirp_ = nullptr;     // count_ complex numbers; null without Bluestein
  double* spectrum_ = nullptr;  // of the chirp's conjugate, padded
};

}  // namespace rewire::kernel::cpu
