// SPDX-License-Identifier: Apache-2.0
//
// The programs of a sandbox are asked over a socket, and have files and memory by their descriptors
// (sandbox_message.h). This is what they do alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/status.h"

namespace rewire::serve {

// Sends the server a message. The process ends if the server has gone.
void SendToServer(const std::string& message);

// The next message of the server, which holds until the next call; empty if the server has gone.
std::string_view NextMessage();

// The bytes of an open file, which must not be empty. `what` names it in errors. Errors: kIo; kInvalidFile.
Result<std::size_t> FileBytes(int file, const char* what);

// Maps a file for reading. Errors: kOutOfMemory.
Result<SharedBytes> MapSandboxFile(int file, std::size_t bytes);

// SharedMemory: the memory that the server shares with the process, and makes larger when it must.
class SharedMemory {
 public:
  // Errors: kOutOfMemory if there is no address space for so many bytes.
  Status MapUpTo(std::uint64_t bytes);
  std::byte* at(std::uint64_t offset) const { return data_ + offset; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// A number of the command line, which the server writes.
std::uint64_t NumberOf(const char* text);

}  // namespace rewire::serve
