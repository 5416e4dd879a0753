// SPDX-License-Identifier: Apache-2.0
// Result trees for code that came without types: what every Ret of a function returns.
#pragma once

#include "executable_format/module.h"

namespace rewire::tvm {

// Gives every function whose result is one opaque value the tree of ADTs that all of its returns have in
// common, with opaque leaves: by that, each field is an output of its own, named by its path ("output.1.0").
// A tree that differs between returns, that recurses, or that has more than 4,096 leaves stays opaque from
// there on down. The module need not have been verified.
void InferResults(Module* module);

}  // namespace rewire::tvm
