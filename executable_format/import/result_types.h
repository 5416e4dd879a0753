// SPDX-License-Identifier: Apache-2.0
//
// Infers result types for code that has no types, from what every Ret of a function returns.
#pragma once

#include "rewire/executable_format/module.h"

namespace rewire::tvm {

// For each function whose result is one opaque value, finds the tree of ADTs that all of its returns have in
// common. Each field then becomes an output of its own, named by its path ("output.1.0").
//
// A part stays opaque if it differs between returns, if it is recursive, or if the tree has more than 4,096
// leaves. The same holds if it would take more work or leaves than is in proportion to the code. The module
// need not be verified.
void InferResults(Module* module);

}  // namespace rewire::tvm
