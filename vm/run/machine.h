// SPDX-License-Identifier: Apache-2.0
//
// Machine: one VM, the parts that it consists of and how they make a run.
//
// Three classes are "the VM", each for somebody else:
// - VirtualMachine is the host's handle. It checks that there is a machine and that it is free (vm_hold.h).
// - Machine is the state that stays from run to run. Kernels reach it through their function table.
// - Interpreter executes one run on a machine and is gone with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "rewire/base/likely.h"
#include "rewire/vm/heap/evacuation.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/inputs/bound_inputs.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/memory/arena_rep.h"
#include "rewire/vm/memory/cache_line.h"
#include "rewire/vm/memory/vm_memory.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/outputs/bound_outputs.h"
#include "rewire/vm/program.h"
#include "rewire/vm/run/device_work.h"
#include "rewire/vm/run/interrupts.h"
#include "rewire/vm/run/recorder.h"
#include "rewire/vm/run/run_memory.h"
#include "rewire/vm/value.h"

namespace rewire {

// A kernel's state for one VM, kept between its calls.
struct KernelSlot {
  void* state = nullptr;
  void (*deleter)(void* state) = nullptr;
};

struct Machine;

// Ends a VM and gives its memory back.
struct DeleteMachine {
  void operator()(Machine* machine) const;
};
using OwnedMachine = std::unique_ptr<Machine, DeleteMachine>;

// On cache lines of its own, because VMs that one thread made may run on different threads.
struct alignas(kCacheLine) Machine : OnCacheLines {
  // Makes a VM with memory of the program's allocator.
  static OwnedMachine Make(const Program& program, const Limits& limits);
  // Its runs take their memory from the arena.
  static OwnedMachine Make(const Program& program, const Limits& limits, const SharedArena& arena);
  // The VM lies in `memory`, with all it needs. Errors: kOutOfMemory if there is no room for the VM itself.
  static Result<OwnedMachine> Make(const Program& program, const Limits& limits, const StaticMemory& memory);
  // Takes over a reference to each account.
  Machine(const Program& linked, const VmMemory& own_memory, const Limits& own_limits);
  ~Machine();

  // Runs (machine_run.cc), as the public class has them (virtual_machine.h), for a VM that is held or that
  // nobody else knows.
  [[gnu::cold]] Status Invoke(std::uint32_t function);  // smaller than InvokeInline
  Result<Value> Invoke(std::string_view function, Span<const Value> values);
  Status Invoke(std::string_view function, Span<const Value> values, Span<const OutputBinding> bindings);
  // Invoke, for the one caller that counts: a run on the fast path is inline, too.
  template <bool kFastPath>
  Status InvokeInline(std::uint32_t function);
  Status InvokeWith(std::uint32_t function, Span<const Value> values);
  template <bool kFastPath>
  Status Run(std::uint32_t function, const RewireFFIAny* run_inputs);
  [[gnu::cold]] Status RunSlowPath(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunFastPath(std::uint32_t function, const RewireFFIAny* run_inputs);
  [[gnu::cold]] Status RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs);
  void EndOfUnlimitedCall();  // of a run without limits of memory
  void EndOfCall();
  [[gnu::cold]] Status MakeArrays();
  [[gnu::cold]] Status CheckFunction(std::uint32_t function) const;
  [[gnu::cold]] Status TakeOut(const Status& status, RewireFFIAny* value);
  [[gnu::cold]] Status TooSmall(const Error& error, std::uint32_t function) const;
  const std::string& FunctionName(std::uint32_t function) const {
    return rep.module().functions[function].name;
  }

  // Runs that go on after the call, and streams and events of devices (machine_async.cc).
  Status InvokeAsync(std::uint32_t function);
  Status Wait();
  Status WaitForStarted();
  [[gnu::cold]] void Settle();
  [[gnu::cold]] Status ContinueRun(std::uint32_t function, const RewireFFIAny* run_inputs, bool* done);
  [[gnu::cold]] Result<DeviceStreams::Stream*> StreamOf(DLDevice device, bool events);
  [[gnu::cold]] Status UseStream(DLDevice device, void* stream);
  Result<void*> DoneEvent(DLDevice device);
  Status WaitForEvent(DLDevice device, void* event);

  // The last run's result (machine_result.cc).
  void SetResult(const RewireFFIAny& value);
  bool has_result() const {
    return (own_result.type_index | shared_result.any().type_index) != kRewireFFINone;
  }
  void DropResult();
  void ShareResult();
  // The last run's result, as others may hold it.
  const Value& SharedResult();
  // The value at a node of the result's type, borrowed. None if the value has another structure.
  RewireFFIAny ResultNode(std::uint32_t node) const;
  Result<Value> Output(std::uint32_t leaf);
  // Clears the caller's memory in the tensors that the run has made in it.
  void DetachOutputs(std::uint32_t function);

  // Memory and limits (machine.cc).
  void SetLimits(const Limits& given);
  // With a byte limit, a run starts with empty arrays (SpareBlocks).
  bool limited() const { return limits.bytes != std::numeric_limits<std::uint64_t>::max(); }
  Status Trim();
  void ReleaseArrays();
  void GiveBackRunMemory();
  void FreeSpareMemory();
  void DropKernelState();

  Program program;
  const ProgramRep& rep;
  VmMemory memory;
  DeviceStreams streams;
  ObjectHeap heap;
  Limits limits;
  RunMemory run;
  BoundInputs inputs;
  BoundOutputs outputs;
  DeviceWork work;                  // that devices have been given and that is not waited for
  AccountArray<KernelSlot> slots;   // by import; exist during a run
  SpareBlocks home_blocks;          // of `moved`
  GrowingArray<MovedObject> moved;  // scratch of Evacuate

  // The last run's result. Most hosts look at their bound outputs only. So it stays the VM's own value, which
  // the heap counts without locked instructions, until somebody asks for it (SharedResult). At most one of
  // the two is set.
  RewireFFIAny own_result{};
  Value shared_result;
  bool result_wanted = false;  // somebody has asked for a result
  std::uint32_t result_function = 0;

  // Flags: runs have left something behind.
  static constexpr std::uint8_t kStarted = 1;   // work that the host has not waited for
  static constexpr std::uint8_t kLate = 2;      // `late` is set
  static constexpr std::uint8_t kRecorded = 4;  // `recorder` has a recording
  // Nothing is left behind, but runs that repeat are recorded (VirtualMachine::TrySetAutomaticRecording).
  static constexpr std::uint8_t kAutomatic = 8;
  std::uint8_t open_ends = 0;
  bool async = false;             // the current run leaves its work to a later wait
  bool stream_asked = false;      // by the last kernel call
  bool detaches_outputs = false;  // the outputs of the current run are bound for one call
  Status late;                    // the failure of such work, until the caller asks
  Recorder recorder;

  // Inputs that are of the current call alone, so that a run without bound outputs may take over their
  // references.
  RewireFFIAny* given_inputs = nullptr;
  const std::uint32_t* current_call = nullptr;  // the InvokePacked that is being executed
  std::atomic<bool> held{false};                // true during a call on the VM (VmHold)
  Interrupts interrupts;
  Observer* observer = nullptr;
};

}  // namespace rewire
