// SPDX-License-Identifier: Apache-2.0
// Writes a file whole or not at all: to a temporary name in the same folder, synced, then renamed.
#pragma once

#include <cstddef>
#include <string>

#include "base/span.h"
#include "base/status.h"

namespace rewire {

// Until Commit succeeds, `path` keeps what it held; a file that is destroyed uncommitted leaves nothing
// behind. A path that exists and is no regular file (a device, a pipe) is written directly. Errors are kIo
// with path and reason. Not thread-safe; two writers of one path do not disturb each other, the last to
// commit wins.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  Status Write(Span<const std::byte> bytes);
  // Makes the file `size` bytes long (at least 1) and gives them as memory that can be read and written until
  // the next Map or the end of this object, Commit or not. The space on disk is taken at once: a full disk is
  // an error here, not a signal later. kUnsupported for what is written directly.
  Result<std::byte*> Map(std::size_t size);
  Status Commit();

 private:
  AtomicFile(int descriptor, std::string path, std::string temporary);
  void Abandon();
  void Unmap();

  int descriptor_;
  std::string path_;
  std::string temporary_;  // empty when written directly
  std::byte* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

// The whole of it for content that is in memory.
Status WriteFileAtomically(const std::string& path, Span<const std::byte> bytes);

}  // namespace rewire
