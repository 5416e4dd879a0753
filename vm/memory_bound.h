// SPDX-License-Identifier: Apache-2.0
// MemoryBound: how much memory a run of a function can need, computed from its verified code.
//
// The code is followed along all paths: where paths meet, the larger of what they hold counts; loops are
// followed until nothing changes. Sizes are those of the signature, of constants, of LoadConsti, and what
// `rewire.shape.*` functions make of them. The bound holds for inputs that are contiguous host tensors,
// borrowed and aligned to 64 bytes, and bound outputs that are contiguous, aligned as the kernels ask and
// apart from the inputs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/array.h"
#include "base/export.h"
#include "base/status.h"
#include "executable_format/executable.h"

namespace rewire {

class KernelSet;

struct MemoryBoundOptions {
  // All outputs are bound to the caller's memory; otherwise none is.
  bool outputs_bound = false;
  // The largest value of symbolic dimensions of signatures, by name, where that is less than the executable
  // itself says (Module::symbol_limits). The bound holds for all smaller ones, too.
  Array<std::pair<std::string, std::int64_t>> max_dims;
};

// All figures are bytes.
struct MemoryBound {
  // Why there is no bound; empty when there is one. Names function, pc and instruction.
  std::string unbounded;

  // The most that one run of a new VirtualMachine holds: VirtualMachine::bytes_peak is never above it, and
  // equals it where the code is one straight line of static shapes. Includes the rounding of blocks.
  std::uint64_t bytes = 0;
  // A StaticMemory of this size, aligned to 128 bytes, suffices: `bytes` and the VM itself.
  std::uint64_t static_bytes = 0;
  // A SharedArena of this size suffices for this VM's runs.
  std::uint64_t arena_bytes = 0;

  // Of these, each by itself and at its own worst moment:
  std::uint64_t storage = 0;    // tensor data as the program asks for it: what a memory plan has to hold
  std::uint64_t objects = 0;    // headers of tensors, storages, ADTs and closures
  std::uint64_t stack = 0;      // registers, frames and argument lists
  std::uint64_t workspace = 0;  // of the kernel call that takes most
  std::uint64_t device = 0;     // of `storage`, what lies on other devices than the host

  // Kernels that take an amount of workspace that their library does not declare; it is not in the figures.
  Array<std::string> undeclared_workspace;

  bool bounded() const { return unbounded.empty(); }
};

// Of a function of an executable; the empty name is the entry. `kernels` are asked for shape functions and
// for declared workspace; those they lack are unknown. kNotFound, kInvalidArgument for a dimension that no
// signature has or a size that is negative.
REWIRE_API Result<MemoryBound> BoundMemory(const Executable& executable, KernelSet* kernels,
                                           std::string_view function = {},
                                           const MemoryBoundOptions& options = {});

}  // namespace rewire
