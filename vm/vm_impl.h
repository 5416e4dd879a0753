// SPDX-License-Identifier: Apache-2.0
// The state of a VirtualMachine, shared by its door (virtual_machine.cc), the interpreter and the kernel
// table.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "vm/cache_line.h"
#include "vm/growing_array.h"
#include "vm/memory/account_array.h"
#include "vm/memory/arena_rep.h"
#include "vm/memory/evacuation.h"
#include "vm/memory/object_heap.h"
#include "vm/outputs/memory_range.h"
#include "vm/outputs/output_slot.h"
#include "vm/program_rep.h"
#include "vm/virtual_machine.h"

namespace rewire {

// One active call. Registers stand on one contiguous stack; a frame names its own by offset, since the stack
// may move.
struct Frame {
  const std::uint32_t* code;       // of the function
  const std::uint32_t* return_pc;  // where the caller goes on; null in the invoked function's frame
  std::uint32_t function;
  std::uint32_t base;          // first register
  std::uint32_t dst;           // the caller's register for the result
  std::uint32_t destinations;  // where its leaves go, an offset in Impl::destinations; kNone for nowhere
};

// What a kernel keeps between its calls by one VM.
struct KernelSlot {
  void* state = nullptr;
  void (*deleter)(void* state) = nullptr;
};

struct Workspace {
  void* block;
  std::uint64_t bytes;
};

// On cache lines of its own: VMs that one thread made are run by others at once.
struct alignas(kCacheLine) VirtualMachine::Impl {
  // Takes over a reference to each account.
  Impl(Program linked, MemoryAccount* run_account, MemoryAccount* home_account, const Limits& own_limits);
  ~Impl();

  // Set inputs of a function; None for those that are not set. Null when there is no memory for them.
  RewireFFIAny* InputsOf(std::uint32_t function);
  TensorObject* CopyOf(const DLTensor& dl);
  Status SetInput(InputHandle handle, const TensorView& view, InputMode mode);
  Status SetInput(InputHandle handle, const Value& value);
  Result<TensorObject*> CopyIfNeeded(InputHandle handle, const DLTensor& dl, InputMode mode);
  Result<TensorObject*> CopyToDevice(const DLTensor& from, const LinkedDevice& device);
  Status TakeInput(InputHandle handle, const Value& value, RewireFFIAny* taken);
  Result<OutputSlot*> SlotOf(OutputHandle handle);
  Status CheckDevice(OutputHandle handle, DLDevice device) const;
  bool MoveInput(InputHandle handle, const TensorView& view);
  bool MayDescribeAnother(const TensorObject& object) const;
  bool MoveOutput(OutputHandle handle, const TensorView& view);
  void ResetSlot(OutputHandle handle, OutputSlot* slot, OutputSlot::Mode mode);
  Status SetOutput(OutputHandle handle, const TensorView& view);
  Status SetOutput(OutputHandle handle, const OutputCapacity& capacity);
  Status SetOutput(OutputHandle handle, const OutputAllocator& allocator);
  Status Donate(InputHandle input, OutputHandle handle);
  Status PrepareOutputs(std::uint32_t function_index, const RewireFFIAny* run_inputs);
  Status CheckInputOverlaps(std::uint32_t function_index, std::uint32_t input, const RewireFFIAny& value);
  void DetachOutputs(std::uint32_t function);
  const std::string& FunctionName(std::uint32_t function) const {
    return rep.module().functions[function].name;
  }
  Status CheckReturnedInput(std::uint32_t function_index, std::uint32_t leaf, std::uint32_t input);
  Status Run(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs);
  void ReplaceResult(const RewireFFIAny& value);
  void AdoptResult(const RewireFFIAny& value);
  // What lies at a node of the result's type; None where the value has another structure. Borrowed.
  RewireFFIAny ResultNode(std::uint32_t node) const;
  // The run's memory lies in a block of a size: given back after each run.
  bool bounded() const { return block != nullptr; }
  void GiveBackRunMemory();
  Status NoMemory(const char* what) const;
  Status TooSmall(const Error& error, std::uint32_t function) const;
  void DropKernelState();
  void EndOfCall();

  Program program;
  const ProgramRep& rep;
  MemoryAccount* account;  // of runs
  MemoryAccount* home;     // of what stays between them, and of an arena's results; often the same
  ObjectHeap heap;
  Limits limits;

  GrowingArray<RewireFFIAny> stack;  // registers of all frames
  GrowingArray<Frame> frames;
  GrowingArray<RewireFFIAny> args;         // of the kernel call that is being made
  GrowingArray<RewireFFIAny> temporaries;  // objects that live until that call returns
  GrowingArray<Workspace> workspaces;      // its scratch memory
  AccountArray<RewireFFIAny> inputs;       // of all functions one after another, made when first set
  AccountArray<OutputSlots> outputs;       // by function, made when first bound
  GrowingArray<OutputSlot*> destinations;  // of all frames that carry bound outputs
  GrowingArray<RewireFFIAny> leaf_values;  // by node of the result's type, when a run ends; before, scratch
  GrowingArray<NamedRange> output_ranges;  // scratch of PrepareOutputs
  GrowingArray<MovedObject> moved;         // scratch of Evacuate
  FixedBlock* block = nullptr;             // that `account` takes from; null for an ordinary VM
  SharedArena arena;                       // that the block is of
  bool require_zero_copy = false;
  AccountArray<KernelSlot> slots;  // by import, there while a run is
  Value result;
  std::uint32_t result_function = 0;

  std::uint32_t current_kernel = 0;
  std::atomic<bool> running{false};
  // Non-zero when the interpreter has to look up: kCancelled, kHasDeadline.
  static constexpr std::uint32_t kCancelRequested = 1;
  static constexpr std::uint32_t kHasDeadline = 2;
  std::atomic<std::uint32_t> interrupts{0};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  Observer* observer = nullptr;
};

// "function main, input 0 (x)", for messages.
std::string InputText(const Function& function, std::uint32_t index);

// Why the last run copied a bound output.
std::string OutputReason(const VirtualMachine::Impl& vm, std::uint32_t function, std::uint32_t leaf);

}  // namespace rewire
