// SPDX-License-Identifier: Apache-2.0
// How a host says where an output goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/array.h"
#include "base/export.h"
#include "vm/program.h"
#include "vm/tensor.h"

namespace rewire {

// Names an output of the entry function, or carries a resolved handle.
class OutputRef {
 public:
  OutputRef(OutputHandle handle) : handle_(handle), kind_(kHandle) {}  // NOLINT: implicit on purpose
  OutputRef(const char* name) : name_(name), kind_(kName) {}           // NOLINT
  OutputRef(std::string_view name) : name_(name), kind_(kName) {}      // NOLINT
  OutputRef(const std::string& name) : name_(name), kind_(kName) {}    // NOLINT
  OutputRef(int leaf) : handle_{0, static_cast<std::uint32_t>(leaf)}, kind_(kIndex) {}  // NOLINT

 private:
  friend class VirtualMachine;
  OutputHandle handle_;
  std::string_view name_;
  enum : std::uint8_t { kHandle, kName, kIndex } kind_;
};

// Memory for an output whose size is known only when it is made.
struct OutputCapacity {
  void* data = nullptr;
  std::uint64_t bytes = 0;
  DLDevice device = kHost;
};

// Asks the host for memory when an output's size is known. Called on the VM's thread, in each run anew, at
// most once for each tensor that may become the output and once more when one that was made elsewhere has;
// the last answer is the output's memory, earlier ones are not used any more. Where it answers null, the
// tensor is made elsewhere; null for the output itself fails the run with kOutOfMemory.
struct OutputAllocator {
  void* context = nullptr;
  void* (*allocate)(void* context, std::uint64_t bytes, std::uint64_t alignment) = nullptr;
  DLDevice device = kHost;
};

// One output of one call.
struct OutputBinding {
  OutputRef output;
  TensorView tensor;
  Tensor owner{};  // of the memory, where the call is to let it go (VirtualMachine::TryInvoke)
};

// One instruction that can make an output, or the call of a function that makes it.
struct OutputMaker {
  std::uint32_t pc = 0;     // a word of the function's code
  std::string instruction;  // as text
  bool in_place = false;    // it makes the tensor in the caller's memory
  std::string reason;       // why not
};

// What linking has found out about an output: where it can be made, on all paths through the function.
struct OutputPlan {
  bool rewired = false;  // every instruction that can make it does so in the caller's memory
  std::string reason;    // the first one against it
  Array<OutputMaker> makers;
};

// What became of a bound output in the last successful run.
struct OutputReport {
  bool copied = false;  // false: its kernel wrote it in place
  std::string reason;   // why it was copied
};

}  // namespace rewire
