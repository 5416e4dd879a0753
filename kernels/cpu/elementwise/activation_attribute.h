// SPDX-License-Identifier: Apache-2.0
//
// The activation that a kernel applies to each element of its result before it stores it.
#pragma once

#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

struct Activation {
  enum Kind { kNone, kRelu, kClip, kSigmoid, kTanh, kHardSwish, kGelu, kLeakyRelu, kSwish };
  Kind kind = kNone;
  float alpha = 0;
  float beta = 0;

  // Attributes `activation`, `alpha`, `beta`.
  void Read(Attributes& attributes) {
    kind = static_cast<Kind>(attributes.Choice(
        "activation",
        {"none", "relu", "clip", "sigmoid", "tanh", "hard_swish", "gelu", "leaky_relu", "swish"}, 0));
    alpha = static_cast<float>(attributes.Float("alpha", 0));
    beta = static_cast<float>(attributes.Float("beta", 0));
  }
};

}  // namespace rewire::kernel::cpu
