// SPDX-License-Identifier: Apache-2.0
//
// The activation that a kernel applies to each element of its result before it stores it, and a factor and a
// term that follow: post_scale * activation(x) + post_shift.
#pragma once

#include <string_view>

#include "rewire/kernels/contract/activation.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

// The attributes that give it.
struct ActivationNames {
  std::string_view activation, alpha, beta, post_scale, post_shift;
};
inline constexpr ActivationNames kActivation = {"activation", "alpha", "beta", "post_scale", "post_shift"};

struct Activation {
  enum Kind {
    kNone,
#define REWIRE_ACTIVATION_KIND(name, ...) k##name,
    REWIRE_ACTIVATIONS(REWIRE_ACTIVATION_KIND)
#undef REWIRE_ACTIVATION_KIND
  };
  Kind kind = kNone;
  float alpha = 0;
  float beta = 0;
  float post_scale = 1;
  float post_shift = 0;
  bool moves = false;  // whether factor and term change anything

  bool IsNone() const { return kind == kNone && !moves; }

  // The reader keeps the names.
  void Read(Attributes& attributes, const ActivationNames& names = kActivation) {
    kind = static_cast<Kind>(attributes.Choice(names.activation, rewire::names::kActivations, 0));
    alpha = static_cast<float>(attributes.Float(names.alpha, 0));
    beta = static_cast<float>(attributes.Float(names.beta, 0));
    post_scale = static_cast<float>(attributes.Float(names.post_scale, 1));
    post_shift = static_cast<float>(attributes.Float(names.post_shift, 0));
    moves = post_scale != 1 || post_shift != 0;
    if (post_shift == 0) post_shift = -0.0F;  // which changes no number, while 0 makes 0 of -0
  }
};

}  // namespace rewire::kernel::cpu
