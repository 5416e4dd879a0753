// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/files/file_identity.h>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewire/base/export.h"

namespace rewire {

// Tells whether a file is another one than before, because it was replaced or written.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;     // in bytes
  std::int64_t modified = 0;  // when its content was written, in nanoseconds since 1970
  // When it was last written, renamed, or given another owner or mode, in nanoseconds since 1970. It is no
  // part of the identity.
  std::int64_t changed = 0;
  // Whether this was two seconds ago or more. A younger file may be written once more without another time,
  // because file systems count time in steps.
  bool settled = false;

  bool operator==(const FileIdentity& other) const {
    return device == other.device && inode == other.inode && size == other.size && modified == other.modified;
  }
  bool operator!=(const FileIdentity& other) const { return !(*this == other); }
};

// Nanoseconds since 1970, by the clock that files have their times from.
REWIRE_API std::int64_t WallTime();

// Returns the identity of the regular file that the path leads to; nothing if there is none. `errno` then
// says why.
REWIRE_API std::optional<FileIdentity> IdentityOf(const std::string& path);

}  // namespace rewire
