// SPDX-License-Identifier: Apache-2.0
//
// The call of a row of elements (rewire_embedded_row) on broadcast inputs.
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/aot/embedded/call.h"

namespace rewire::aot {

// A call of the row for the whole output. The numbers are inputs behind the call's own, each the same for all
// elements. Errors: kUnsupported for more axes or inputs than rewire_embedded_broadcast_rows takes.
Result<std::string> RowCall(EmbeddedCall& call, const std::string& row,
                            const std::vector<double>& numbers = {});

}  // namespace rewire::aot
