// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/mapped_file.h>.
//
// Whole files as bytes, either mapped or read into private memory.
//
// Mapping is cheaper: pages that nobody touches are not read, and processes share the pages.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/export.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/status.h"

namespace rewire {

// Maps a regular file read-only. The mapping lives as long as `owner`. The file may be renamed or deleted
// meanwhile. Mapping the same file twice returns the same addresses.
//
// If another process truncates the file, touching a lost page raises SIGBUS. Hosts that cannot risk that use
// ReadFile. Errors: kNotFound; kIo with path and reason.
REWIRE_API Result<SharedBytes> MapFile(const std::string& path);

// The same for a path that names the file itself: absolute, and no part of it may be a link, "." or "..". So
// a file that was judged by its canonical path is the one that is mapped, whatever becomes of the path
// meanwhile. Errors name it `name`; a part that has become a link is an error, too.
REWIRE_API Result<SharedBytes> MapFileWithoutLinks(const std::string& path, const std::string& name);

// Tells the system that this part of a mapped file is not needed soon, so that its pages stop counting as
// this process's memory. Does nothing for memory that is not mapped.
void ForgetPages(const SharedBytes& bytes);

// Returns the time of the last change of the file that these bytes are mapped from, as MapFile saw it when
// the file was mapped last. Nanoseconds since 1970, by the clock of the file system; kNotMapped for other
// memory.
constexpr std::int64_t kNotMapped = INT64_MIN;
REWIRE_API std::int64_t MappedFileChanged(Span<const std::byte> bytes);

// Reads a whole file into 64-byte aligned memory of this process. Also reads what cannot be mapped, such as
// pipes and devices.
REWIRE_API Result<SharedBytes> ReadFile(const std::string& path);

}  // namespace rewire
