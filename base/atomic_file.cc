// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/atomic_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "rewire/base/touched_files.h"
#include "rewire/base/unfinished_files.h"

namespace rewire {
namespace {

Status FailWith(const std::string& path, int error) {
  return Fail(StatusCode::kIo, "cannot write '{}': {}", path, std::strerror(error));
}

// Follows a link to an existing file; otherwise gives the path itself.
std::string TargetOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), &std::free);
  return resolved != nullptr ? std::string(resolved.get()) : path;
}

}  // namespace

AtomicFile::AtomicFile(int descriptor, std::string path, std::string target, std::string temporary)
    : descriptor_(descriptor),
      path_(std::move(path)),
      target_(std::move(target)),
      temporary_(std::move(temporary)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

AtomicFile::~AtomicFile() {
  Unmap();
  Abandon();
}

void AtomicFile::Unmap() {
  if (mapped_ != nullptr) munmap(std::exchange(mapped_, nullptr), mapped_bytes_);
}

void AtomicFile::Abandon() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  ForgetUnfinishedFile(std::exchange(temporary_, {}));
}

Result<AtomicFile> AtomicFile::Create(const std::string& path, unsigned mode) {
  if (Status refused = RefuseTouchedFile(path); !refused) return Forward(refused);
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    // A pipe that nobody reads would keep open() waiting; so it is an error.
    const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return FailWith(path, errno);
    if (fcntl(descriptor, F_SETFL, 0) != 0) {
      const int error = errno;
      close(descriptor);
      return FailWith(path, error);
    }
    return AtomicFile(descriptor, path, path, "");
  }
  const std::string target = TargetOf(path);
  // Not mkstemp: its mode is 0600, and the umask that should apply cannot be read without changing it.
  static std::atomic<unsigned> counter = 0;
  for (;;) {
    std::string temporary = Format("{}.tmp{}.{}", target, getpid(), counter++);
    const int descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0) {
      NoteUnfinishedFile(temporary);
      return AtomicFile(descriptor, path, target, std::move(temporary));
    }
    if (errno != EEXIST) return FailWith(path, errno);
  }
}

Status AtomicFile::Write(Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FailWith(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::byte*> AtomicFile::Map(std::size_t size) {
  if (temporary_.empty()) return Fail(StatusCode::kUnsupported, "'" + path_ + "' is no regular file");
  Unmap();
  const auto length = static_cast<off_t>(size);
  if (ftruncate(descriptor_, length) != 0) return FailWith(path_, errno);
  if (const int error = posix_fallocate(descriptor_, 0, length); error != 0) return FailWith(path_, error);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) return FailWith(path_, errno);
  mapped_ = static_cast<std::byte*>(memory);
  mapped_bytes_ = size;
  return mapped_;
}

Status AtomicFile::Commit() {
  // Devices and pipes have nothing to sync and say EINVAL.
  if (fsync(descriptor_) != 0 && !temporary_.empty()) {
    const int error = errno;
    Abandon();
    return FailWith(path_, error);
  }
  if (close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    Abandon();
    return FailWith(path_, error);
  }
  // Inputs may have been read since it was made.
  if (Status refused = temporary_.empty() ? Status() : RefuseTouchedFile(path_); !refused) {
    Abandon();
    return refused;
  }
  if (!temporary_.empty() && rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    Abandon();
    return FailWith(path_, error);
  }
  if (temporary_.empty()) return {};
  ForgetUnfinishedFile(std::exchange(temporary_, {}));
  NoteWrittenFile(path_);
  return {};
}

Status WriteFileAtomically(const std::string& path, Span<const std::byte> bytes) {
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return Forward(file);
  if (Status written = file->Write(bytes); !written) return written;
  return file->Commit();
}

}  // namespace rewire
