// SPDX-License-Identifier: Apache-2.0
//
// Checks kernel calls against the kernel's row. So a call that the kernel would refuse during the run is
// refused when the model is compiled.
#pragma once

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::compiler {

// Checks one call. It fails with kUnsupported in three cases. The call has more inputs or outputs than the
// row. An argument has a dtype that the row does not list. Arguments that must have the same dtype have
// different ones. The message names the kernel; where an argument is wrong, it names that too. The dtypes of
// values that are no tensors are not checked. Without `one_dtype`, the third case is left out.
Status CheckCall(const Node& node, const RewireKernelRow& row, bool one_dtype = true);

}  // namespace rewire::compiler
