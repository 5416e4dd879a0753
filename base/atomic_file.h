// SPDX-License-Identifier: Apache-2.0
// Writes a file whole or not at all: to a temporary name in the same folder, synced, then renamed.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

// Writes a file under a temporary name and renames it on Commit. Until Commit succeeds, `path` keeps its
// content. A file that is destroyed uncommitted leaves nothing behind.
//
// Refuses a file that the program has read or written (touched_files.h), if that is remembered. If `path` is
// a link to a file, the link stays and the file is written. A path that exists and is no regular file (a
// device, a pipe) is written directly.
//
// Errors: kIo with path and reason; kInvalidArgument for a file that was touched. Not thread-safe. Two
// writers of one path do not disturb each other; the last one to commit wins.
class AtomicFile {
 public:
  // `mode` is that of a new file, less what the process's umask takes.
  static Result<AtomicFile> Create(const std::string& path, unsigned mode = 0666);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  Status Write(Span<const std::byte> bytes);
  // Makes the file `size` bytes long (at least 1) and returns them as memory that can be read and written.
  // The memory is valid until the next Map or the end of this object, committed or not. The disk space is
  // reserved at once, so that a full disk is an error here and not a signal later. Errors: kUnsupported for a
  // path that is written directly.
  Result<std::byte*> Map(std::size_t size);
  Status Commit();

 private:
  AtomicFile(int descriptor, std::string path, std::string target, std::string temporary);
  void Abandon();
  void Unmap();

  int descriptor_;
  std::string path_;       // as given, for messages
  std::string target_;     // the file itself if `path` is a link to it
  std::string temporary_;  // empty when written directly
  std::byte* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

// Writes the whole content from memory.
Status WriteFileAtomically(const std::string& path, Span<const std::byte> bytes);

}  // namespace rewire
