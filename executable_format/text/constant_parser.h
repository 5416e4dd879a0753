// SPDX-License-Identifier: Apache-2.0
// The data of constants in text assembly:
//
//   data = "{" elements "}"      flat, or nested as the shape says
//        | element               for a scalar
//        | "zeros" | "fill" element
//        | @file                 .npy, .npz:name or .safetensors:name, of exactly the declared type
//        | "base64" string       the raw bytes
//        | "stored" n string     n raw bytes, given encoded by the constant's codec, in base64
#pragma once

#include "rewire/executable_format/module.h"
#include "rewire/executable_format/text/cursor.h"
#include "rewire/executable_format/text/data_files.h"

namespace rewire::text {

// Reads the text after "=" into `constant`, whose type and codec are set. Returns false after a report.
bool TakeConstantData(Cursor& cursor, DataFiles& files, Constant* constant);

// The data of `.code`: @file for the bytes of any file, "text" string or "text" "{" {string} "}" for source
// text, "base64" or "stored". Sets the constant's type to u8[n], with the number of bytes that are given.
bool TakeCodeData(Cursor& cursor, DataFiles& files, Constant* constant);

// Returns an element as text: "-1.5", "nan", "nan:0x7fc00001", "true". nullopt after a report.
std::optional<std::string> TakeElementText(Cursor& cursor);

}  // namespace rewire::text
