// SPDX-License-Identifier: Apache-2.0
//
// Recordings: work that a queue was given between two calls, and that each replay gives to it again.
//
// OpenCL itself has no such thing; the extension cl_khr_command_buffer has a part of it. Where the driver has
// the extension, commands of the device alone (kernels, fills, copies within the device) that follow each
// other become one command buffer. Copies to and from the host cannot be in one. They, and everything where
// the driver lacks the extension, are enqueued one by one in each replay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/devices/opencl/command_buffers.h"
#include "rewire/devices/opencl/driver.h"

namespace rewire::opencl {

// One command of a queue. What it needs is set, the rest is empty.
struct Command {
  enum class Kind { kLaunch, kCopy, kFill, kWrite, kRead };
  Kind kind = Kind::kLaunch;
  cl_kernel kernel = nullptr;  // with its arguments
  std::size_t global[3] = {};
  std::size_t local[3] = {};
  cl_mem from = nullptr;
  cl_mem to = nullptr;
  std::size_t from_offset = 0;
  std::size_t to_offset = 0;
  std::size_t bytes = 0;
  void* host = nullptr;  // read from or written to
  std::uint32_t pattern_bytes = 0;
  unsigned char pattern[16] = {};

  bool OnDeviceAlone() const { return kind != Kind::kWrite && kind != Kind::kRead; }
  // Gives the command to the queue now.
  int Enqueue(const Driver& driver, cl_command_queue queue) const;
};

class Recording {
 public:
  // `buffers` is null where the device has no command buffers that can be used.
  Recording(const Driver& driver, const CommandBuffers* buffers) : driver_(driver), buffers_(buffers) {}
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Takes the command's kernel over, also on failure. Holds the memory objects until the recording ends.
  int Add(const Command& command, const std::vector<cl_mem>& arguments = {});
  // Makes the command buffers. `queue` is the one that replays go to.
  int Finish(cl_command_queue queue);
  int Replay(cl_command_queue queue) const;

 private:
  // A command buffer, or the command with this number if there is none.
  struct Step {
    cl_command_buffer_khr buffer = nullptr;
    std::size_t command = 0;
  };

  int MakeBuffer(cl_command_queue queue, std::size_t first, std::size_t end);
  int Hold(cl_mem memory);

  const Driver& driver_;
  const CommandBuffers* buffers_;
  std::vector<Command> commands_;
  std::vector<cl_mem> held_;
  std::vector<Step> steps_;
};

// The recordings that are being made, by queue. Any thread may call any function; a queue is used by one
// thread at a time.
class OpenRecordings {
 public:
  // Null if the queue is not recorded. That is all that most launches ask, so it takes no lock then.
  Recording* Find(cl_command_queue queue) {
    return count_.load(std::memory_order_acquire) == 0 ? nullptr : FindSlowly(queue);
  }
  // False if the queue is recorded already.
  bool Begin(cl_command_queue queue, std::unique_ptr<Recording> recording);
  // Null if the queue is not recorded.
  std::unique_ptr<Recording> End(cl_command_queue queue);

 private:
  Recording* FindSlowly(cl_command_queue queue);

  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::unordered_map<cl_command_queue, std::unique_ptr<Recording>> open_;
};

}  // namespace rewire::opencl
