// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose state is their attributes derive from WithAttributes.
#pragma once

#include "rewire/vm/kernel/attributes.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel {

// `Contract` is a struct of kernels/contract that reads the attributes.
template <typename Contract>
struct WithAttributes : Contract {
  static Status Make(Attributes& attributes, WithAttributes* kernel) {
    kernel->Read(attributes);
    return Status();
  }
};

}  // namespace rewire::kernel
