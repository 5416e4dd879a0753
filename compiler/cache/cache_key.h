// SPDX-License-Identifier: Apache-2.0
//
// Keys: texts of all that a compiled model depends on, so that two compilations of equal keys give the same
// executable.
#pragma once

#include <string>

#include "rewire/compiler/cache/content_hash.h"
#include "rewire/compiler/compiler.h"

namespace rewire::compiler {

// Whether the executable is all that compiling with these options is for. Sets of parameters, and what
// samples show, are not kept.
bool IsCacheable(const CompileOptions& options);

// Whether the executable is for a cache. Processes map its constants, so whatever can be computed before a
// program is linked belongs into the file.
bool IsForCache(const CompileOptions& options);

// The options that the executable depends on.
std::string OptionsText(const CompileOptions& options);

// This build of the compiler, and the features of the CPU that it asks for.
std::string BuildText();

// The key of an entry: the text of the model's content, and hashes of the options and of the build.
std::string CacheKey(const ContentHash& hash, const std::string& model, const CompileOptions& options);

}  // namespace rewire::compiler
