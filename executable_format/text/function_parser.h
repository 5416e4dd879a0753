// SPDX-License-Identifier: Apache-2.0
// The body of a function in text assembly: labels and instructions up to .end. What may stand where follows
// from isa.def and LayoutOf (instruction_text.h); no instruction is named here.
//
//   line    = [label ":"] [instruction]
//           | ".registers" n | ".words" n {"," n} | ".note" pc string
//   instruction = [register "="] mnemonic operands {"@" string}
#pragma once

#include "rewire/executable_format/text/cursor.h"
#include "rewire/executable_format/text/tables.h"

namespace rewire::text {

// Fills in the code, register count and notes of `function`, whose inputs are set. The cursor stands behind
// the .func line and is left behind .end. Everything wrong is reported.
void TakeFunctionBody(Cursor& cursor, Tables& tables, Function* function);

}  // namespace rewire::text
