// SPDX-License-Identifier: Apache-2.0
//
// Nodes that call functions of the host.
#pragma once

#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {

// Every operator of this domain is a function that the host registers.
inline constexpr const char kHostDomain[] = "rewire.host";
// The row of all of them.
const Operator& HostFunction();

}  // namespace rewire::compiler
