// SPDX-License-Identifier: Apache-2.0
// Replaces edited_lines.cc in builds without libedit.
#include "rewire/tools/debug/edited_lines.h"

namespace rewire::tools {

std::unique_ptr<LineSource> EditedLines(Complete, const std::string&) { return nullptr; }

}  // namespace rewire::tools
