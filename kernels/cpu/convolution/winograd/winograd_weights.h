// SPDX-License-Identifier: Apache-2.0
//
// The kernel that transforms the weights of convolutions in Winograd's form.
#pragma once

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// The windows along the last two axes, of [M, C, 3, 3] or of [M, C, planes, 3, 3].
struct WinogradWeights {
  static constexpr const char* kName = names::kPackedWinogradWeights;
  Status operator()(TensorView w, TensorView out) const;
};

}  // namespace rewire::kernel::cpu
