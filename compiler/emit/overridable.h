// SPDX-License-Identifier: Apache-2.0
//
// Initializers that runs may give, in the executable's metadata (docs/format.md).
#pragma once

#include <vector>

#include "rewire/compiler/overridable.h"
#include "rewire/executable_format/module.h"

namespace rewire::compiler {

// Adds an entry for each, "overridable 0" and so on. One whose name is not UTF-8, or whose entry would exceed
// the format's limit, is left out.
void AddOverridable(const std::vector<OverridableInitializer>& initializers, Module* module);

std::vector<OverridableInitializer> ReadOverridable(const Module& module);

}  // namespace rewire::compiler
