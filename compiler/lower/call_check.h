// SPDX-License-Identifier: Apache-2.0
//
// Checks kernel calls against the kernel's row. So a call that the kernel would refuse during the run is
// refused when the model is compiled.
#pragma once

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::compiler {

// Errors: kUnsupported for more inputs or outputs than the row has, for an argument whose dtype the row does
// not list, and for arguments that must have the same dtype but do not. The message names kernel and
// argument. The dtypes of values that are no tensors are not checked.
Status CheckCall(const Node& node, const RewireKernelRow& row);

}  // namespace rewire::compiler
