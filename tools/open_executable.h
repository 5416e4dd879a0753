// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "executable_format/executable.h"

namespace rewire::tools {

// Opens an .rwx file; text assembly (a name that ends in .asm) is assembled in memory. Errors name the file.
Result<Executable> OpenExecutable(const std::string& path, const OpenOptions& options = {});

}  // namespace rewire::tools
