// SPDX-License-Identifier: Apache-2.0
//
// VmImpl: a VM, its state and what it can be asked to do. The public class is a shell over it, which checks
// that the VM exists and is free (vm_hold.h). The interpreter and the kernel table work on the same state.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/likely.h"
#include "rewire/executable_format/isa.h"
#include "rewire/vm/heap/evacuation.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/input.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/memory/arena_rep.h"
#include "rewire/vm/memory/cache_line.h"
#include "rewire/vm/memory/growing_array.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/output.h"
#include "rewire/vm/outputs/output_slot.h"
#include "rewire/vm/program.h"
#include "rewire/vm/run/device_work.h"
#include "rewire/vm/run/run_counter.h"
#include "rewire/vm/shared_arena.h"
#include "rewire/vm/value.h"
#include "rewire/vm/value/memory_range.h"

namespace rewire {

// One active call. All registers lie on one contiguous stack. The stack may move, so a frame stores the
// offset of its registers.
struct Frame {
  const std::uint32_t* code;       // of the function
  const std::uint32_t* return_pc;  // where the caller continues; null in the frame of the invoked function
  std::uint32_t function;
  std::uint32_t base;          // first register
  std::uint32_t dst;           // the caller's register for the result
  std::uint32_t destinations;  // where the result's leaves go: an offset in VmImpl::destinations, or kNone
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

struct VmImpl;

// Ends a VM and gives its memory back.
struct DeleteVm {
  void operator()(VmImpl* vm) const;
};
using OwnedVm = std::unique_ptr<VmImpl, DeleteVm>;

// On cache lines of its own, because VMs that one thread made may run on different threads.
struct alignas(kCacheLine) VmImpl : OnCacheLines {
  // Makes a VM with memory of the program's allocator.
  static OwnedVm Make(const Program& program, const Limits& limits);
  // Its runs take their memory from the arena.
  static OwnedVm Make(const Program& program, const Limits& limits, const SharedArena& arena);
  // The VM lies in `memory`, with all it needs. Errors: kOutOfMemory if there is no room for the VM itself.
  static Result<OwnedVm> Make(const Program& program, const Limits& limits, const StaticMemory& memory);
  // Takes over a reference to each account.
  VmImpl(const Program& linked, MemoryAccount* run_account, MemoryAccount* home_account,
         const Limits& own_limits);
  ~VmImpl();

  // What the public class has under the same name (virtual_machine.h), for a VM that is held or that nobody
  // else knows.
  Status SetInput(InputHandle handle, const TensorView& view, InputMode mode);
  Status SetInput(InputHandle handle, const Value& value);
  Status SetInputs(std::uint32_t function, Span<const TensorView> tensors);
  Status ClearInputs(std::string_view function);
  Status BindOutput(const OutputRef& output, const TensorView& tensor);
  Status SetOutput(OutputHandle handle, const TensorView& view);
  Status SetOutput(OutputHandle handle, const Tensor& tensor);
  Status SetOutput(OutputHandle handle, const OutputCapacity& capacity);
  Status SetOutput(OutputHandle handle, const OutputAllocator& allocator);
  [[gnu::cold]] Status Donate(InputHandle input, OutputHandle handle);
  Status ClearOutput(OutputHandle handle);
  Status ClearOutputs(std::string_view function);
  [[gnu::cold]] Status Invoke(std::uint32_t function);  // smaller than InvokeInline
  Result<Value> Invoke(std::string_view function, Span<const Value> values);
  Status Invoke(std::string_view function, Span<const Value> values, Span<const OutputBinding> bindings);
  Result<std::vector<std::int64_t>> OutputShape(OutputHandle handle) const;
  Result<OutputReport> ReportOutput(OutputHandle handle) const;
  void SetLimits(const Limits& given);
  void SetDeadline(std::chrono::steady_clock::time_point when);
  Status Trim();
  // The same, for a VM that may be running. Only Cancel may come from another thread.
  Result<InputHandle> Resolve(const InputRef& input) const;
  Result<OutputHandle> Resolve(const OutputRef& output) const;
  Result<InputReport> ReportInput(InputHandle handle) const;
  Result<Value> Output(std::uint32_t leaf);
  void Cancel();
  std::uint64_t bytes_held() const { return account->used() + (home != account ? home->used() : 0); }

  // Inputs (vm_inputs.cc). The inputs of a function; None for inputs that are not set. Returns null if there
  // is no memory for them.
  RewireFFIAny* InputsOf(std::uint32_t function);
  TensorObject* CopyOf(const DLTensor& dl);
  [[gnu::cold]] Result<TensorObject*> CopyIfNeeded(InputHandle handle, const DLTensor& dl, InputMode mode);
  [[gnu::cold]] Result<TensorObject*> CopyToDevice(const DLTensor& from, const LinkedDevice& device);
  [[gnu::cold]] Result<TupleObject*> CopyTreeToDevice(const TupleObject& from, const LinkedDevice& device);
  Status TakeInput(InputHandle handle, const Value& value, RewireFFIAny* taken);
  [[gnu::cold]] Result<Tensor> Imported(const DLTensor& dl) const;
  bool MoveInput(InputHandle handle, const TensorView& view);
  bool MayDescribeAnother(const TensorObject& object) const;

  // Outputs (vm_outputs.cc, output_binding.cc).
  Result<OutputSlot*> SlotOf(OutputHandle handle);
  const OutputSlot* LastSlot(OutputHandle handle) const;
  Status CheckDevice(OutputHandle handle, DLDevice device) const;
  bool MoveOutput(OutputHandle handle, const TensorView& view);
  void ResetSlot(OutputHandle handle, OutputSlot* slot, OutputSlot::Mode mode);
  Status BindForCall(std::uint32_t function, const OutputBinding& binding);
  void DetachOutputs(std::uint32_t function);
  // How memory of outputs enters a run (output_memory.cc).
  Status PrepareOutputs(std::uint32_t function_index, const RewireFFIAny* run_inputs);
  Status PrepareDonation(std::uint32_t function_index, std::uint32_t leaf, const RewireFFIAny* run_inputs);
  Status AdmitAnswer(std::uint32_t function_index, std::uint32_t leaf, void* data, std::uint64_t bytes);
  Status CheckFixedMemory(std::uint32_t function_index, const NamedRange& memory, bool donated,
                          const char* whose) const;
  Status CheckInputOverlaps(std::uint32_t function_index, Span<const NamedRange> ranges, std::uint32_t input,
                            const RewireFFIAny& value);
  Status NoteInputOverlaps(std::uint32_t function_index, Span<const NamedRange> ranges, std::uint32_t input,
                           const TensorObject* tensor);
  Status CheckReturnedInput(std::uint32_t function_index, std::uint32_t leaf, std::uint32_t input);

  // Runs (vm_run.cc).
  const std::string& FunctionName(std::uint32_t function) const {
    return rep.module().functions[function].name;
  }
  [[gnu::cold]] Status CheckFunction(std::uint32_t function) const;
  [[gnu::cold]] Status InputMissing(std::uint32_t function, const RewireFFIAny* input);
  // Invoke, for the one caller that counts: a plain run is inline, too.
  template <bool kFastPath>
  Status InvokeInline(std::uint32_t function);
  Status InvokeWith(std::uint32_t function, Span<const Value> values);
  template <bool kFastPath>
  Status Run(std::uint32_t function, const RewireFFIAny* run_inputs);
  [[gnu::cold]] Status RunSlowPath(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunOnce(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status RunFastPath(std::uint32_t function, const RewireFFIAny* run_inputs);
  bool IsBound(std::uint32_t function) const { return !outputs.empty() && outputs[function].bound > 0; }
  [[gnu::cold]] Status TakeOut(const Status& status, RewireFFIAny* value);
  [[gnu::cold]] Status RunBounded(std::uint32_t function, const RewireFFIAny* run_inputs);
  // Runs that go on after the call (vm_async.cc), and recorded ones (vm_recording.cc).
  Status InvokeAsync(std::uint32_t function);
  Status Wait();
  Status WaitForStarted();
  [[gnu::cold]] void Settle();
  [[gnu::cold]] Status ContinueRun(std::uint32_t function, const RewireFFIAny* run_inputs, bool* replayed);
  [[gnu::cold]] Result<DeviceStreams::Stream*> StreamOf(DLDevice device, bool events);
  [[gnu::cold]] Status UseStream(DLDevice device, void* stream);
  Result<void*> DoneEvent(DLDevice device);
  Status WaitForEvent(DLDevice device, void* event);
  [[gnu::cold]] Status Record(std::uint32_t function);
  [[gnu::cold]] Status RecordUsed(std::uint32_t function);
  [[gnu::cold]] Status RecordRun(std::uint32_t function, DeviceStreams::Stream* stream);
  [[gnu::cold]] bool RecordsRepeated(std::uint32_t function, const RewireFFIAny* run_inputs);
  Status Replay();
  Status GiveReplay();
  [[gnu::cold]] void DropRecording();
  [[gnu::cold]] Status TooSmall(const Error& error, std::uint32_t function) const;
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

  // Memory (vm_impl.cc). True if the run's memory is a block of fixed size, which is given back after each
  // run.
  bool bounded() const { return block != nullptr; }
  void GiveBackRunMemory();
  [[gnu::cold]] Status MakeArrays();
  void ReleaseArrays();
  void FreeSpareMemory();
  // With a byte limit, a run starts with empty arrays (SpareBlocks).
  bool limited() const { return limits.bytes != std::numeric_limits<std::uint64_t>::max(); }
  [[gnu::cold]] Status NoMemory(const char* what) const;
  void DropKernelState();
  void EndOfUnlimitedCall();  // of a run without limits of memory
  void EndOfCall();
  [[gnu::cold]] void ShrinkArrays();

  Program program;
  const ProgramRep& rep;
  MemoryAccount* account;  // of runs
  MemoryAccount* home;     // for what stays between runs, and for results of an arena; often the same account
  DeviceStreams streams;
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
  DeviceWork work;                         // that devices have been given and that is not waited for
  FixedBlock* block = nullptr;             // the block that `account` allocates from; null for an ordinary VM
  SharedArena arena;                       // the arena that the block belongs to
  bool has_arrays = false;                 // `slots` and `args` are as a run needs them
  bool require_zero_copy = false;
  bool detaches_outputs = false;   // the outputs of the current run are bound for one call
  AccountArray<KernelSlot> slots;  // by import; exist during a run
  // The last run's result. Most hosts look at their bound outputs only. So it stays the VM's own value, which
  // the heap counts without locked instructions, until somebody asks for it (SharedResult). At most one of
  // the two is set.
  RewireFFIAny own_result{};
  Value shared_result;
  bool result_wanted = false;  // somebody has asked for a result
  std::uint32_t result_function = 0;

  // What runs have left behind: flags.
  static constexpr std::uint8_t kStarted = 1;   // work that the host has not waited for
  static constexpr std::uint8_t kLate = 2;      // `late` is set
  static constexpr std::uint8_t kRecorded = 4;  // `recording` is set
  // Nothing is left behind, but runs that repeat are recorded (VirtualMachine::TrySetAutomaticRecording).
  static constexpr std::uint8_t kAutomatic = 8;
  std::uint8_t open_ends = 0;
  std::uint8_t repeats = 0;             // runs of recording.function since the last change
  bool async = false;                   // the current run leaves its work to a later wait
  bool stream_asked = false;            // by the last kernel call
  std::uint32_t recorded_call = kNone;  // the kernel called last while a run is recorded
  Status late;                          // the failure of such work, until the caller asks
  struct Recording {
    void* handle = nullptr;
    std::uint32_t function = 0;
    DeviceStreams::Stream* stream = nullptr;
    DeviceStreams::Source first;
    DeviceStreams::Source last;
    Value result;  // of the recorded run, which each replay writes again
  };
  Recording recording;

  const RewireFFIAny* inputs_of_run = nullptr;  // set while outputs are bound
  // Inputs that are of the current call alone, so that a run without bound outputs may take over their
  // references.
  RewireFFIAny* given_inputs = nullptr;
  const std::uint32_t* current_call = nullptr;  // the InvokePacked that is being executed
  std::atomic<bool> held{false};                // true during a call on the VM (VmHold)
  // Flags; if any is set, the interpreter must check for an interruption.
  static constexpr std::uint32_t kCancelRequested = 1;
  static constexpr std::uint32_t kHasDeadline = 2;
  static constexpr std::uint32_t kInFlight = 4;  // copies use memory of the host (DeviceWork::in_flight)
  static constexpr std::uint32_t kObserved = 8;  // an observer wants to know of kernel calls
  std::atomic<std::uint32_t> interrupts{0};
  RunCounter runs;
  bool cancelled() const {
    return (interrupts.load(std::memory_order_relaxed) & kCancelRequested) != 0 && runs.cancelled();
  }
  // Before a run, or the wait for one: what was asked of an earlier run is not asked of this one.
  void BeginRun() {
    if (REWIRE_UNLIKELY((interrupts.load(std::memory_order_relaxed) & kCancelRequested) != 0)) {
      interrupts.fetch_and(~kCancelRequested, std::memory_order_relaxed);
    }
    runs.Begin();
  }
  // Whether the run that is going on may go on. Errors: kCancelled, kDeadlineExceeded.
  [[gnu::cold]] Status CheckInterrupted() const;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  Observer* observer = nullptr;
};

// Checks that a tensor with a valid form has memory for its elements. Errors: kInvalidArgument.
Status CheckMemory(const DLTensor& dl);

// Names for messages: "function main, input 0 (x)" and "function main, output 0 (y)".
std::string OutputText(const Function& function, std::uint32_t leaf);
std::string InputText(const Function& function, std::uint32_t index);

// Why the last run copied a bound output.
std::string OutputReason(const VmImpl& vm, std::uint32_t function, std::uint32_t leaf);

}  // namespace rewire
