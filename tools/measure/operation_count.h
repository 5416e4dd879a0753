// SPDX-License-Identifier: Apache-2.0
// How much work a kernel call is, for comparing its time with what a processor can do.
#pragma once

#include "rewire/base/span.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/packed_function.h"

namespace rewire::tools {

struct OperationCount {
  // Multiplications and additions of a convolution or product in its plain form. 0 for other kernels, and for
  // kernels whose library does not tell it.
  double operations = 0;
  double bytes = 0;  // of the tensors that the call is given, each counted once
};

// `args` as the kernel received them. The rule is what the kernel's library declares (vm/kernel/work.h). Only
// shapes and dtypes are read, so tensors may lie on any device.
OperationCount CountOperations(const PackedFunction& kernel, const KernelImport& import,
                               Span<const RewireFFIAny> args);

}  // namespace rewire::tools
