// SPDX-License-Identifier: Apache-2.0
//
// Elementwise work behind a product that is done while the result is still in registers.
#pragma once

#include <dnnl.hpp>

#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::onednn {

struct Activation {
  int kind = 0;  // position in kNames of fused.cc
  float alpha = 0;
  float beta = 0;

  // Reads the attributes `activation`, `alpha` and `beta`.
  void Read(Attributes& attributes);
  void AppendTo(dnnl::primitive_attr* attributes) const;
};

}  // namespace rewire::kernel::onednn
