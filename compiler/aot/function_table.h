// SPDX-License-Identifier: Apache-2.0
//
// The table of a source's functions, for hosts that do not know them.
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/aot/entry_point.h"
#include "rewire/compiler/aot/function_text.h"

namespace rewire::aot {

// Types of the table. They are the same in all headers of vm-aot, so that a host can include several.
extern const char kTableTypes[];

std::string TableText(const SourceForm& form, const std::vector<EntryPoint>& entries);

}  // namespace rewire::aot
