// SPDX-License-Identifier: Apache-2.0
//
// EmitLinked: an executable as a C source of constant data, which the VM runs without reader and verifier
// (executable_format/linked/linked_executable.h). docs/embedding.md explains when that is worth it.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire {

struct LinkedSource {
  std::string header;
  std::string source;
  std::uint64_t table_bytes = 0;     // all but the constants' bytes
  std::uint64_t constant_bytes = 0;  // each constant takes a multiple of 64
};

// Emits the source, which is C99 and C++. `prefix` begins its names, and `header_name` is how it includes the
// header.
//
// Errors: kInvalidArgument if the prefix is no C name; kInvalidFile for damaged constants; kUnsupported for
// constants that only a host can decode.
Result<LinkedSource> EmitLinked(const Executable& executable, const std::string& prefix,
                                const std::string& header_name);

}  // namespace rewire
