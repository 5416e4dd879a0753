// SPDX-License-Identifier: Apache-2.0
// Writes a module as an .rwx file. The one writer: assembler, importers and compiler all end here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "executable_format/module.h"

namespace rewire {

// The file's bytes. The same module always gives the same bytes. Fills in checksums; checks no verifier rule.
// kInvalidArgument when a count or size does not fit the format.
Result<std::vector<std::byte>> SerializeModule(const Module& module);

// A file without its data section, for a bundle, which holds the constants' bytes elsewhere.
Result<std::vector<std::byte>> SerializeWithoutData(const Module& module);

// Writes to a temporary name beside `path`, syncs and renames: the file is whole or absent. kIo with the path
// and reason.
Status WriteModule(const Module& module, const std::string& path);

}  // namespace rewire
