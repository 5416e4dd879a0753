// SPDX-License-Identifier: Apache-2.0
//
// Lines that somebody edits at a terminal, by libedit.
#pragma once

#include <memory>
#include <string>

#include "rewire/tools/debug/line_source.h"

namespace rewire::tools {

// Null if the build has no libedit, or if the terminal cannot do it.
std::unique_ptr<LineSource> EditedLines(Complete complete, const std::string& history_file);

}  // namespace rewire::tools
