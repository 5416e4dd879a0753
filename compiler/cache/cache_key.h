// SPDX-License-Identifier: Apache-2.0
//
// Keys: texts of all that a compiled model depends on, so that two compilations of equal keys give the same
// executable.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/span.h"
#include "rewire/compiler/compiler.h"

namespace rewire::compiler {

// Whether the executable is all that compiling with these options is for. Sets of parameters, and what
// samples show, are not kept.
bool IsCacheable(const CompileOptions& options);

// The options that the executable depends on.
std::string OptionsText(const CompileOptions& options);

// This build of the compiler, and the features of the CPU that it asks for.
std::string BuildText();

// The key of an entry: hashes of the model's bytes, of the options and of the build.
std::string CacheKey(const std::string& model, const CompileOptions& options);

// "HASH SIZE" of a content.
std::string ContentText(Span<const std::byte> content);

// The same for a file. A file that this process has hashed before is not read again if it is the same by
// device, inode, size and time. Thread-safe. Errors: as of MapFile.
Result<std::string> FileContentText(const std::string& path);

}  // namespace rewire::compiler
