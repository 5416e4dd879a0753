// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length.
#pragma once

#include <cstdint>

#include "kernels/cpu/workspace_sizes.h"
#include "vm/kernel/status.h"

namespace rewire::kernel::cpu {

// A transform of one length. Powers of two are done by radix 2; other lengths become a circular convolution
// of the next power of two that fits (Bluestein). Memory is the running kernel's workspace: not for several
// threads.
class Fourier {
 public:
  // `inverse` turns the sign of the exponent; the result is not scaled.
  Status Init(std::int64_t length, bool inverse);

  // What Init takes for a length of at most `most`.
  static void DeclareWorkspace(WorkspaceSizes& sizes, std::int64_t most);

  // `length` complex numbers, real and imaginary parts in turn, in place.
  void Run(double* data) const;

 private:
  void Radix2(double* data, const double* roots) const;

  std::int64_t length_ = 0;
  std::int64_t padded_ = 0;     // the power of two
  double* roots_ = nullptr;     // of unity, padded_ / 2 of them, as complex numbers
  double* chirp_ = nullptr;     // length_ complex numbers; null for powers of two
  double* spectrum_ = nullptr;  // of the chirp's conjugate, padded
  double* scratch_ = nullptr;
};

}  // namespace rewire::kernel::cpu
