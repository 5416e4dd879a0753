// SPDX-License-Identifier: Apache-2.0
// Outputs that kernels write straight into their .npy files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/atomic_file.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

// An output that is bound to a file. The file has a temporary name and grows when the output's size is known.
// The VM refers to this object until the output is cleared.
class MappedOutput {
 public:
  MappedOutput(std::uint32_t leaf, std::string path) : leaf_(leaf), path_(std::move(path)) {}
  MappedOutput(const MappedOutput&) = delete;
  MappedOutput& operator=(const MappedOutput&) = delete;

  std::uint32_t leaf() const { return leaf_; }
  const std::string& path() const { return path_; }
  OutputAllocator allocator() { return {this, Allocate, kHost}; }
  // The reason if memory was refused.
  const Status& status() const { return status_; }

  // True if the tensor is the content of the file.
  bool Holds(const HostTensor& tensor) const;
  // Writes the header and gives the file its name.
  Status Commit(const HostTensor& tensor);

 private:
  static void* Allocate(void* self, std::uint64_t bytes, std::uint64_t alignment);

  std::uint32_t leaf_;
  std::string path_;
  std::optional<AtomicFile> file_;
  std::byte* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  Status status_;
};

using MappedOutputs = std::vector<std::unique_ptr<MappedOutput>>;

// Binds every output that --output sends to its own .npy file, if it can be bound. The others are written
// after the run.
MappedOutputs MapOutputs(VirtualMachine* vm, std::uint32_t function,
                         const std::vector<std::string>& bindings);

}  // namespace rewire::tools
