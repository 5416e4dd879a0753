// SPDX-License-Identifier: Apache-2.0
//
// The state of a VirtualMachine. Used by its interface (virtual_machine.cc), the interpreter and the kernel
// table.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/memory/arena_rep.h"
#include "rewire/vm/memory/cache_line.h"
#include "rewire/vm/memory/evacuation.h"
#include "rewire/vm/memory/growing_array.h"
#include "rewire/vm/memory/object_heap.h"
#include "rewire/vm/outputs/memory_range.h"
#include "rewire/vm/outputs/output_slot.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire {

// One active call. All registers lie on one contiguous stack. The stack may move, so a frame stores the
// offset of its registers.
struct Frame {
  const std::uint32_t* code;       // of the function
  const std::uint32_t* return_pc;  // where the caller continues; null in the frame of the invoked function
  std::uint32_t function;
  std::uint32_t base;          // first register
  std::uint32_t dst;           // the caller's register for the result
  std::uint32_t destinations;  // where the result's leaves go: an offset in Impl::destinations, or kNone
};

// What a kernel keeps for one VM between its calls.
struct KernelSlot {
  void* state = nullptr;
  void (*deleter)(void* state) = nullptr;
};

struct Workspace {
  void* block;
  std::uint64_t bytes;
};

// On cache lines of its own, because VMs that one thread made may run on different threads.
struct alignas(kCacheLine) VirtualMachine::Impl {
  // Takes over a reference to each account.
  Impl(Program linked, MemoryAccount* run_account, MemoryAccount* home_account, const Limits& own_limits);
  ~Impl();

  // The inputs of a function; None for inputs that are not set. Returns null if there is no memory for them.
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
  // How memory of outputs enters a run (outputs/output_memory.cc).
  Status PrepareOutputs(std::uint32_t function_index, const RewireFFIAny* run_inputs);
  Status PrepareDonation(std::uint32_t function_index, std::uint32_t leaf, const RewireFFIAny* run_inputs);
  Status AdmitAnswer(std::uint32_t function_index, std::uint32_t leaf, void* data, std::uint64_t bytes);
  Status CheckFixedMemory(std::uint32_t function_index, const NamedRange& memory, bool donated,
                          const char* whose) const;
  Status CheckInputOverlaps(std::uint32_t function_index, Span<const NamedRange> ranges, std::uint32_t input,
                            const RewireFFIAny& value);
  Status NoteInputOverlaps(std::uint32_t function_index, Span<const NamedRange> ranges, std::uint32_t input,
                           const TensorObject* tensor);
  void DetachOutputs(std::uint32_t function);
  const std::string& FunctionName(std::uint32_t function) const {
    return rep.module().functions[function].name;
  }
  Status CheckReturnedInput(std::uint32_t function_index, std::uint32_t leaf, std::uint32_t input);
  // Implementations of VirtualMachine's calls; the VM must be held (VmHold).
  Status InvokeWith(std::uint32_t function, Span<const Value> values);
  Status ClearOutput(OutputHandle handle);
  Status Run(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs);
  void ReplaceResult(const RewireFFIAny& value);
  void AdoptResult(const RewireFFIAny& value);
  // The value at a node of the result's type, borrowed. None if the value has another structure.
  RewireFFIAny ResultNode(std::uint32_t node) const;
  // True if the run's memory is a block of fixed size, which is given back after each run.
  bool bounded() const { return block != nullptr; }
  void GiveBackRunMemory();
  void ReleaseArrays();
  void FreeSpareMemory();
  // With a byte limit, a run starts with empty arrays (SpareBlocks).
  bool limited() const { return limits.bytes != std::numeric_limits<std::uint64_t>::max(); }
  Status NoMemory(const char* what) const;
  Status TooSmall(const Error& error, std::uint32_t function) const;
  void DropKernelState();
  void EndOfCall();

  Program program;
  const ProgramRep& rep;
  MemoryAccount* account;  // of runs
  MemoryAccount* home;     // for what stays between runs, and for results of an arena; often the same account
  ObjectHeap heap;
  Limits limits;

  SpareBlocks blocks;                // of the arrays of runs
  SpareBlocks home_blocks;           // of `moved`
  GrowingArray<RewireFFIAny> stack;  // registers of all frames
  GrowingArray<Frame> frames;
  GrowingArray<RewireFFIAny> args;         // of the kernel call that is being made
  GrowingArray<RewireFFIAny> temporaries;  // objects that live until that call returns
  GrowingArray<Workspace> workspaces;      // its scratch memory
  AccountArray<RewireFFIAny> inputs;       // of all functions one after another, made when first set
  AccountArray<OutputSlots> outputs;       // by function, made when first bound
  GrowingArray<OutputSlot*> destinations;  // of all frames that carry bound outputs
  GrowingArray<RewireFFIAny> leaf_values;  // by node of the result's type, when a run ends
  GrowingArray<NamedRange> output_ranges;  // scratch of PrepareOutputs
  GrowingArray<RewireFFIAny> input_walk;   // scratch of CheckInputOverlaps
  GrowingArray<MovedObject> moved;         // scratch of Evacuate
  FixedBlock* block = nullptr;             // the block that `account` allocates from; null for an ordinary VM
  SharedArena arena;                       // the arena that the block belongs to
  bool require_zero_copy = false;
  bool detaches_outputs = false;   // the outputs of the current run are bound for one call
  AccountArray<KernelSlot> slots;  // by import; exist during a run
  Value result;
  std::uint32_t result_function = 0;

  const RewireFFIAny* inputs_of_run = nullptr;  // set while outputs are bound
  std::uint32_t current_kernel = 0;
  std::atomic<bool> held{false};  // true during a call on the VM (VmHold)
  // Flags; if any is set, the interpreter must check for an interruption.
  static constexpr std::uint32_t kCancelRequested = 1;
  static constexpr std::uint32_t kHasDeadline = 2;
  std::atomic<std::uint32_t> interrupts{0};
  // A cancellation applies to the run that was going on when it came. So runs are numbered, starting with 1.
  std::atomic<std::uint64_t> current_run{0};  // 0 if no run is going on
  std::atomic<std::uint64_t> cancelled_run{0};
  std::uint64_t last_run = 0;
  bool cancelled() const {
    return (interrupts.load(std::memory_order_relaxed) & kCancelRequested) != 0 &&
           cancelled_run.load(std::memory_order_relaxed) == current_run.load(std::memory_order_relaxed);
  }
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  Observer* observer = nullptr;
};

// Holds a VM during a call that changes it. Meanwhile other calls are refused, whether they come from another
// thread or from a callback. So no callback sees a VM in the middle of a change.
class VmHold {
 public:
  enum Purpose : std::uint8_t { kChange, kRun };

  // `vm` is null if the VM was moved from.
  explicit VmHold(VirtualMachine::Impl* vm, Purpose purpose = kChange) : empty_(vm == nullptr) {
    // If two threads begin runs at once, which is a mistake of the host, one is refused. For shorter calls an
    // atomic exchange would cost more than the call itself.
    if (vm == nullptr || vm->held.load(std::memory_order_relaxed)) return;
    if (purpose == kRun && vm->held.exchange(true, std::memory_order_acquire)) return;
    if (purpose == kChange) vm->held.store(true, std::memory_order_relaxed);
    vm_ = vm;
  }
  ~VmHold() {
    if (vm_ != nullptr) vm_->held.store(false, std::memory_order_release);
  }
  VmHold(const VmHold&) = delete;
  VmHold& operator=(const VmHold&) = delete;

  explicit operator bool() const { return vm_ != nullptr; }
  // Why the VM could not be held.
  [[gnu::cold]] Status Refusal() const;

 private:
  VirtualMachine::Impl* vm_ = nullptr;
  bool empty_;
};

// The error for a VM that was moved from.
[[gnu::cold]] Status EmptyVm();

// Checks that a tensor with a valid form has memory for its elements. Errors: kInvalidArgument.
Status CheckMemory(const DLTensor& dl);

// Names for messages: "function main, input 0 (x)" and "function main, output 0 (y)".
std::string OutputText(const Function& function, std::uint32_t leaf);
std::string InputText(const Function& function, std::uint32_t index);

// Why the last run copied a bound output.
std::string OutputReason(const VirtualMachine::Impl& vm, std::uint32_t function, std::uint32_t leaf);

}  // namespace rewire
