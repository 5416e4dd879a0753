// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/worker/sandboxed_process.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "rewire/serve/sandbox/sandbox_message.h"

namespace rewire::serve {

void SendToServer(const std::string& message) {
  if (send(kSandboxSocket, message.data(), message.size(), MSG_NOSIGNAL) < 0) _exit(0);
}

std::string_view NextMessage() {
  static std::vector<char> message(kMostMessageBytes);
  const ssize_t got = recv(kSandboxSocket, message.data(), message.size(), 0);
  return {message.data(), got <= 0 ? 0 : static_cast<std::size_t>(got)};
}

Result<std::size_t> FileBytes(int file, const char* what) {
  struct stat found {};
  if (fstat(file, &found) != 0) return Fail(StatusCode::kIo, "the {} cannot be read", what);
  if (found.st_size == 0) return Fail(StatusCode::kInvalidFile, "the {} is empty", what);
  return static_cast<std::size_t>(found.st_size);
}

Result<SharedBytes> MapSandboxFile(int file, std::size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED)
    return Fail(StatusCode::kOutOfMemory, "the sandbox has no room for a file of {} bytes", bytes);
  return SharedBytes{{static_cast<const std::byte*>(data), bytes},
                     std::shared_ptr<const void>(data, [bytes](void* last) { munmap(last, bytes); })};
}

Status SharedMemory::MapUpTo(std::uint64_t bytes) {
  if (bytes <= bytes_) return {};
  if (bytes_ != 0) munmap(data_, bytes_);
  bytes_ = 0;
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kSandboxMemory, 0);
  if (data == MAP_FAILED)
    return Fail(StatusCode::kOutOfMemory, "the sandbox has no room for {} bytes of shared memory", bytes);
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
  return {};
}

std::uint64_t NumberOf(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace rewire::serve
