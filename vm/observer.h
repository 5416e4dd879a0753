// SPDX-License-Identifier: Apache-2.0
// Observer: sees what a VM executes. The trace and the profile of vm-run are observers; a host may write its
// own.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/export.h"
#include "base/span.h"
#include "executable_format/module.h"
#include "vm/kernel/ffi_abi.h"

namespace rewire {

// Called on the VM's thread. References are valid during the call.
class REWIRE_API Observer {
 public:
  virtual ~Observer() = default;

  // Which calls are made at all; asked once per run.
  virtual bool wants_instructions() const { return false; }
  virtual bool wants_kernels() const { return false; }

  struct Instruction {
    const Module& module;
    std::uint32_t function;
    std::uint32_t pc;                    // word index
    std::uint32_t depth;                 // active calls, 1 for the invoked function
    Span<const RewireFFIAny> registers;  // the frame, before the instruction; kinds as in objects.h
  };
  // Before an instruction is executed.
  virtual void OnInstruction(const Instruction&) {}

  struct KernelCall {
    const Module& module;
    std::uint32_t function;
    std::uint32_t pc;
    std::uint32_t kernel;           // index in module.kernels
    Span<const RewireFFIAny> args;  // as the kernel got them
    std::int64_t start_ns;          // steady clock
    std::int64_t end_ns;
    bool ok;
  };
  // After a kernel has returned.
  virtual void OnKernel(const KernelCall&) {}
};

}  // namespace rewire
