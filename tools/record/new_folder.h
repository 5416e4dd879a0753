// SPDX-License-Identifier: Apache-2.0
// The folders that --dump-values and --record fill.
#pragma once

#include <string>

#include "rewire/base/status.h"

namespace rewire::tools {

// Makes a folder, and those around it, for files of one command. Errors: kInvalidArgument if there are files
// in it already, which could be taken for new ones; kIo. `option` begins the messages.
Status MakeNewFolder(const std::string& path, const std::string& option);

// `text` as a part of a file's name: letters, digits and "._-", at most 80 of them.
std::string FileNamePart(const std::string& text);

}  // namespace rewire::tools
