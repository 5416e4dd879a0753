// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/client/client_socket.h"
#include "rewire/serve/sandbox/sandboxed_model.h"
#include "rewire/vm/limits.h"

namespace rewire::serve {

struct WorkerStart {
  std::string program;  // the path of kSandboxProgram
  int model = -1;       // the file of the executable
  SandboxSettings settings;
  Limits limits;
  std::int32_t threads = 1;
};

// WorkerProcess: a process of kSandboxProgram, and memory that this process shares with it. One thread at a
// time. The process ends with the object.
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
  std::byte* memory() const { return memory_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  WorkerProcess(const WorkerStart& start, int socket, int memory_file)
      : cpu_seconds_(start.settings.cpu_seconds), socket_(socket), memory_file_(memory_file) {}
  Status Spawn(const WorkerStart& start, int its_socket);
  // Gives the process CPU time for one message.
  void GrantTime() const;
  void End();
  // Ends the process, and says how it ended.
  Error Ended();

  const std::uint32_t cpu_seconds_;
  const int socket_;
  const int memory_file_;
  pid_t process_ = -1;
  clockid_t clock_{};  // of the CPU time that the process has taken
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::vector<char> message_;
};

}  // namespace rewire::serve
