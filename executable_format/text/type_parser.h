// SPDX-License-Identifier: Apache-2.0
// Types in text assembly:
//
//   type   = dtype shape ["on" (device | "*")] | "value" | "integer" | "closure" | "storage"
//          | ["adt" tag] "(" [type {"," type}] ")"
//   dtype  = "f32" ... | "?"
//   shape  = "[*]" | "[" [dim {"," dim}] "]"
//   dim    = number | symbol | "?"
#pragma once

#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/text/cursor.h"
#include "rewire/executable_format/text/tables.h"
#include "rewire/executable_format/types.h"

namespace rewire::text {

// Reads a type. New symbols and devices are added to the tables. Returns false after a report.
bool TakeType(Cursor& cursor, Tables& tables, Type* type);

// A function's result: as TakeType, but every leaf may be named ("scores: f32[N]"); `names` gets one name a
// leaf, empty for none.
bool TakeResultType(Cursor& cursor, Tables& tables, Type* type, Array<std::string>* names);

}  // namespace rewire::text
