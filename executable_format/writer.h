// SPDX-License-Identifier: Apache-2.0
//
// Writes a module as an .rwx file. Assembler, importers and compiler all use this writer.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Returns the file's bytes; the same module always gives the same bytes. Fills in checksums but checks no
// rule of the verifier. Errors: kInvalidArgument if a count or size does not fit the format.
Result<std::vector<std::byte>> SerializeModule(const Module& module);

// Returns a file without its data section, for a bundle, which stores the constants' bytes elsewhere.
Result<std::vector<std::byte>> SerializeWithoutData(const Module& module);

// Writes to a temporary name beside `path`, syncs and renames. So the file is complete or absent. Errors: kIo
// with path and reason. `mode` is that of the file, less what the process's umask takes.
Status WriteModule(const Module& module, const std::string& path, unsigned mode = 0666);

}  // namespace rewire
