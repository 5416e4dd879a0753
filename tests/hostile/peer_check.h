// SPDX-License-Identifier: Apache-2.0
// The library's reader and writer held against this folder's, which are written from docs/format.md alone.
#pragma once

#include <string>
#include <string_view>

#include "rewire/executable_format/module.h"

namespace rewire::hostile {

// For a file that the library has accepted and the module that it read there. The file must be one that
// docs/format.md allows; with `data_checked` (OpenOptions::verify_data) the library must write the module as
// the same sections, in the page's order; and what it writes must be the same again after this folder's
// reader and writer. What is wrong, or nothing.
std::string CheckPeer(const Module& module, std::string_view file, bool data_checked);

}  // namespace rewire::hostile
