// SPDX-License-Identifier: Apache-2.0
// Everything of a text assembly that stands outside function bodies:
//
//   .metadata key "value"               .compressed
//   .device [alias "="] device          .symbol name          .string "text"
//   .const entry ":" type ["codec" "=" (zstd | none | n)] "=" data
//   .param entry ":" type               .computed entry ":" type
//   .kernel entry ["=" name] ["{" attributes "}"] [objects] [align=n] [flags=n] [writes(n, ...)]
//   .code entry ["codec" "=" (zstd | none | n)] "=" code       .device_code, .device_kernel:
//   device_code_parser.h .func entry "(" [name ":" type {"," name ":" type}] ")" "->" result
//
// where entry = name | "#" index [name].
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/text/cursor.h"
#include "rewire/executable_format/text/data_files.h"
#include "rewire/executable_format/text/tables.h"

namespace rewire::text {

// The start of a function's body: a token index, for function number `function` of the module.
struct BodyStart {
  std::uint32_t function;
  std::size_t token;
};

// Reads the whole text except the function bodies, so that the bodies may use names that are declared after
// them.
Array<BodyStart> TakeDeclarations(Cursor& cursor, Tables& tables, DataFiles& files);

}  // namespace rewire::text
