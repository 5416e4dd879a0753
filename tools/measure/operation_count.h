// SPDX-License-Identifier: Apache-2.0
// How much work a kernel call is, for comparing its time with what a processor can do.
#pragma once

#include "rewire/base/span.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/kernel/ffi_abi.h"

namespace rewire::tools {

struct OperationCount {
  // Multiplications and additions of a convolution or product in its plain form. 0 for other kernels, and for
  // kernels whose work their shapes do not tell.
  double operations = 0;
  double bytes = 0;  // of the tensors that the call is given, each counted once
};

// `args` as the kernel received them. The rule is names::ProductsOf (kernels/contract/work.h). Only shapes
// and dtypes are read, so tensors may lie on any device.
OperationCount CountOperations(const KernelImport& import, Span<const RewireFFIAny> args);

}  // namespace rewire::tools
