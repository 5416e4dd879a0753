// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/status.h"
#include "rewire/serve/client/client_socket.h"
#include "rewire/serve/core/description.h"

namespace rewire::serve {

// How long a process may take until it has loaded its executable, or compiled its model.
inline constexpr std::chrono::seconds kSandboxLoadTime{300};

struct WorkerStart {
  std::string program;  // its path
  std::vector<std::string> arguments;
  std::vector<int> files;  // the process has them from kSandboxFiles on
  SandboxSettings settings;
};

// The path of a program of sandboxes. Errors: kUnsupported if it is not installed.
Result<std::string> FindSandboxProgram(const char* name);

// WorkerProcess: a process of a sandbox, and memory that this process shares with it. One thread at a time.
// The process ends with the object.
class WorkerProcess {
 public:
  // Errors: kIo.
  static Result<std::unique_ptr<WorkerProcess>> Start(const WorkerStart& start);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends a message and waits for the answer, which holds until the next call; an empty message only waits.
  // Errors: kIo if the process has ended, with its signal. kCancelled and kDeadlineExceeded; then the process
  // is ended. kUnsupported for a message that is too long.
  Result<std::string_view> Ask(std::string_view message, const Patience& patience);
  // Whether it runs and has no message that nobody has asked for.
  bool is_idle() const;

  // Makes the shared memory at least as large. It may move. Errors: kOutOfMemory.
  Status Reserve(std::uint64_t bytes);
  // Makes the shared memory so large, without mapping it here. Errors: kOutOfMemory.
  Status Resize(std::uint64_t bytes);
  // Ends the process and gives the shared memory away, which nobody can change any more. Errors: kIo.
  Result<Descriptor> TakeMemory();
  std::byte* memory() const { return memory_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  WorkerProcess(const WorkerStart& start, Descriptor socket, Descriptor memory_file)
      : cpu_seconds_(start.settings.cpu_seconds),
        socket_(std::move(socket)),
        memory_file_(std::move(memory_file)) {}
  Status Spawn(const WorkerStart& start, int its_socket);
  // Gives the process CPU time for one message.
  void GrantTime() const;
  void End();
  void Unmap();
  // Ends the process, and says how it ended.
  Error Ended();

  const std::uint32_t cpu_seconds_;
  const Descriptor socket_;
  Descriptor memory_file_;
  pid_t process_ = -1;
  clockid_t clock_{};  // of the CPU time that the process has taken
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::vector<char> message_;
};

}  // namespace rewire::serve
