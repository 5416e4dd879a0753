// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// A transform of one length. Powers of two use radix 2. Other lengths become a circular convolution of the
// next power of two that fits (Bluestein). It uses the running kernel's workspace and only one thread.
class Fourier {
 public:
  // `inverse` changes the sign of the exponent. The result is not scaled.
  Status Init(std::int64_t length, bool inverse, Pace& pace);

  // Declares the workspace that Init takes for a length of at most `most`.
  static void DeclareWorkspace(WorkspaceSizes& sizes, std::int64_t most);

  // Transforms `length` complex numbers (real and imaginary part in turn) in place. Returns false if told to
  // stop.
  [[nodiscard]] bool Run(double* data, Pace& pace) const;

 private:
  bool Radix2(double* data, const double* roots, Pace& pace) const;

  std::int64_t length_ = 0;
  std::int64_t padded_ = 0;     // the power of two
  double* roots_ = nullptr;     // of unity, padded_ / 2 of them, as complex numbers
  double* chirp_ = nullptr;     // length_ complex numbers; null for powers of two
  double* spectrum_ = nullptr;  // of the chirp's conjugate, padded
  double* scratch_ = nullptr;
};

}  // namespace rewire::kernel::cpu
