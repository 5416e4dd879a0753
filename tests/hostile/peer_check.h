// SPDX-License-Identifier: Apache-2.0
// Compares the library's reader and writer with the reader and writer of this folder. Those are written from
// docs/format.md alone, so a difference is a fault of the library or of that page.
#pragma once

#include <string>
#include <string_view>

#include "rewire/executable_format/module.h"

namespace rewire::hostile {

// Checks a file that the library has accepted, and the module that the library read from it:
//   - docs/format.md must allow the file.
//   - The library must write the module as the same sections, in the order of that page. This is checked only
//     with `data_checked`, which says that the file was opened with OpenOptions::verify_data.
//   - This folder's reader and writer must turn what the library wrote into the same bytes.
// Returns what is wrong, or "" if nothing is.
std::string CheckPeer(Module module, std::string_view file, bool data_checked);

}  // namespace rewire::hostile
