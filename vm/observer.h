// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/observer.h>.
//
// Observer: is told what a VM executes. The trace and the profile of vm-run are observers, and a host may
// write its own.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/device_waits.h"
#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// Called on the VM's thread. References are valid only during the call. virtual_machine.h says what an
// observer may do with the VM. If an observer throws, the run ends.
class REWIRE_API Observer {
 public:
  virtual ~Observer() = default;

  // Says which of the two functions below the VM calls. Asked once, at the beginning of a run.
  virtual bool wants_instructions() const { return false; }
  virtual bool wants_kernels() const { return false; }

  struct Instruction {
    const Module& module;
    std::uint32_t function;
    std::uint32_t pc;     // index of the word in the function's code
    std::uint32_t depth;  // active calls; 1 in the invoked function
    // the frame's registers before the instruction; kinds as in objects.h
    Span<const RewireFFIAny> registers;
  };
  // Called before an instruction is executed. What earlier ones have given to devices is done.
  virtual void OnInstruction(const Instruction&) {}

  struct KernelCall {
    const Module& module;
    std::uint32_t function;
    std::uint32_t pc;
    std::uint32_t kernel;           // index in module.kernels
    Span<const RewireFFIAny> args;  // as the kernel received them
    std::int64_t start_ns;          // nanoseconds of the steady clock
    std::int64_t end_ns;
    bool ok;
    const PackedFunction& packed;  // the kernel, with what its library declares about it
  };
  // Called after a kernel has returned. A kernel of a device has then only been enqueued.
  virtual void OnKernel(const KernelCall&) {}

  struct Wait {
    const Module& module;
    DLDevice device;
    std::uint32_t function;  // what enqueued the last of the work that the host waited for
    std::uint32_t pc;
    WaitCause cause;
    std::int64_t start_ns;  // nanoseconds of the steady clock
    std::int64_t end_ns;
  };
  // Called after the host has waited for a device, if the observer wants kernels.
  virtual void OnWait(const Wait&) {}
};

}  // namespace rewire
