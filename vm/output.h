// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/output.h>.
//
// How a host says where an output goes, and what it learns about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/vm/program.h"
#include "rewire/vm/tensor.h"

namespace rewire {

class BoundOutputs;  // outputs/bound_outputs.h

// Refers to an output: by name or index in the entry function, or by a handle.
class OutputRef {
 public:
  OutputRef(OutputHandle handle) : handle_(handle), kind_(kHandle) {}  // NOLINT: implicit on purpose
  OutputRef(const char* name) : name_(name), kind_(kName) {}           // NOLINT
  OutputRef(std::string_view name) : name_(name), kind_(kName) {}      // NOLINT
  OutputRef(const std::string& name) : name_(name), kind_(kName) {}    // NOLINT
  OutputRef(int leaf) : handle_{0, static_cast<std::uint32_t>(leaf)}, kind_(kIndex) {}  // NOLINT

 private:
  friend class BoundOutputs;
  OutputHandle handle_;
  std::string_view name_;
  enum : std::uint8_t { kHandle, kName, kIndex } kind_;
};

// Memory for an output whose size is known only during the run.
struct OutputCapacity {
  void* data = nullptr;
  std::uint64_t bytes = 0;
  DLDevice device = kHost;
};

// Asks the host for memory once an output's size is known.
//
// `allocate` is called on the VM's thread, anew in each run. It is called at most once for each tensor that
// may become the output. If the output turns out to be a tensor that was made elsewhere, it is called once
// more. The last answer is the output's memory; earlier answers are no longer used. If it answers null for a
// tensor that may become the output, that tensor is made elsewhere. If it answers null for the output itself,
// the run fails with kOutOfMemory.
//
// The answer obeys the rules for memory that is bound before the run (VirtualMachine::TrySetOutput). If it
// overlaps an input or is not aligned as requested, the tensor is made elsewhere and copied at the end of the
// run. If it overlaps another output, a constant, a parameter or the VM's memory, the run fails.
// virtual_machine.h says what `allocate` may call.
struct OutputAllocator {
  void* context = nullptr;
  void* (*allocate)(void* context, std::uint64_t bytes, std::uint64_t alignment) = nullptr;
  DLDevice device = kHost;
};

// One output of one call, and the memory for it.
struct OutputBinding {
  OutputRef output;
  TensorView tensor;
  Tensor owner{};  // keeps the memory alive; see VirtualMachine::TryInvoke for when it is released
};

// An instruction that can make an output, or the call of a function that makes it.
struct OutputMaker {
  std::uint32_t pc = 0;     // index of the word in the function's code
  std::string instruction;  // as text assembly
  bool in_place = false;    // true: makes the tensor in the caller's memory
  std::string reason;       // why it does not
};

// Linking has found out this about an output: which instructions can make it, on all paths, and where.
struct OutputPlan {
  bool rewired = false;  // true: each of them makes it in the caller's memory
  std::string reason;    // if not rewired: the first reason
  Array<OutputMaker> makers;
};

// An OutputReport says what happened to a bound output in the last successful run.
struct OutputReport {
  bool copied = false;  // false: a kernel wrote it in place
  std::string reason;   // why it was copied
};

}  // namespace rewire
