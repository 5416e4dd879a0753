// SPDX-License-Identifier: Apache-2.0
// Whole files as bytes: mapped, so that what is not touched is not read and processes share pages, or read
// into private memory.
#pragma once

#include <string>

#include "base/export.h"
#include "base/shared_bytes.h"
#include "base/status.h"

namespace rewire {

// Maps a regular file read-only. The mapping lives as long as `owner`; the file may be renamed or deleted
// meanwhile. A file that is mapped already is not mapped again: equal files give equal addresses. A file that
// another process truncates raises SIGBUS where a lost page is touched: hosts that cannot risk it use
// ReadFile. kNotFound; kIo with path and reason.
REWIRE_API Result<SharedBytes> MapFile(const std::string& path);

// Tells the system that this part of a mapped file is not needed soon, so that its pages do not count as this
// process's. Does nothing for other memory.
void ForgetPages(const SharedBytes& bytes);

// A whole file in memory of this process, 64-byte aligned. Also reads what cannot be mapped: pipes and
// devices.
REWIRE_API Result<SharedBytes> ReadFile(const std::string& path);

}  // namespace rewire
