// SPDX-License-Identifier: Apache-2.0
// What follows a product element by element and is done while the result is still in registers.
#pragma once

#include <dnnl.hpp>

#include "vm/kernel/attributes.h"

namespace rewire::kernel::onednn {

struct Activation {
  int kind = 0;  // position in kNames of fused.cc
  float alpha = 0;
  float beta = 0;

  // Attributes `activation`, `alpha`, `beta`.
  void Read(Attributes& attributes);
  void AppendTo(dnnl::primitive_attr* attributes) const;
};

}  // namespace rewire::kernel::onednn
