// SPDX-License-Identifier: Apache-2.0
//
// The interpreter: executes verified code on a VM's register stack.
//
// It relies on what docs/verification.md lists as checked before the run. It checks everything else itself:
// kinds of `value` registers, field indices, scalars, shapes, storage bounds, written arguments and limits.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/assert.h"
#include "rewire/base/likely.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/vm/outputs/output_slot.h"
#include "rewire/vm/run/machine.h"

namespace rewire {

// Whether a kernel writes its argument at `position`; the outputs are `first_output` and what follows.
bool IsWritten(const KernelImport& import, std::uint32_t position, std::uint32_t first_output);

class Interpreter {
 public:
  // An error is written to `status`, which is a success until then.
  Interpreter(Machine& vm, Status* status)
      : vm_(vm),
        rep_(vm.rep),
        heap_(vm.heap),
        kernels_(vm.rep.kernels.data()),
        constants_(vm.rep.constants.data()),
        steps_left_(vm.limits.steps),
        status_(*status) {}

  // Runs `function` with `inputs`, which are retained here. On success *result holds one reference of the VM.
  // After an error there is none, and no frames are left. If `bound` is true, the function's bound outputs
  // are made in their memory where the plan allows it, and copied there otherwise.
  void Run(std::uint32_t function, const RewireFFIAny* inputs, bool bound, RewireFFIAny* result);
  // The same without bound outputs and without an observer.
  void RunFastPath(std::uint32_t function, const RewireFFIAny* inputs, RewireFFIAny* result);

  // Waits for what runs have started and left.
  Status WaitForStarted() { return FinishWork(true); }

 private:
  using Word = std::uint32_t;
  static constexpr std::uint64_t kFuel =
      4096;  // instructions between two checks of limits, cancellation and deadline

  bool Loop();
  [[gnu::cold]] bool LoopObserved();
  // Whether the run is still good when its work on devices is done, or left to a later wait.
  [[gnu::cold]] bool EndWork(bool ok);

  // Instructions that the loop has inline. It passes what it keeps in registers of the CPU: `pc` of the
  // instruction, and `registers`, which is registers_. They set pc_ where they need it. Each returns false
  // after a failure.
  bool AllocStorage(const Word* pc, RewireFFIAny* registers);
  bool AllocTensor(const Word* pc, RewireFFIAny* registers);
  template <typename Shape>
  bool AllocTensorFastPath(const Word* pc, RewireFFIAny* registers, Word storage_register,
                           Word offset_register, DLDataType dtype, Shape shape, Word dst);
  bool CallKernel(const Word* pc, RewireFFIAny* registers);
  template <bool kOneOutput>
  bool CallFastPath(const Word* pc, RewireFFIAny* registers, const LinkedKernel& kernel);
  [[gnu::cold, gnu::noinline]] bool CallGeneral(const Word* pc, RewireFFIAny* registers,
                                                const LinkedKernel& kernel);
  // Instructions that are too long for the loop itself. Each reads its operands at pc_ and returns false
  // after a failure.
  bool AllocTensorReg();
  // For what AllocTensorFastPath leaves. Slow paths set pc_ from `pc`.
  bool AllocTensorSlowPath(const Word* pc);
  // Makes a tensor of `bytes` bytes whose shape is known to fit. Used by both forms of AllocTensor.
  bool FinishTensor(Word storage_register, Word offset_register, DLDataType dtype, std::uint64_t bytes,
                    Span<const std::int64_t> shape, Word dst);
  [[gnu::cold]] bool FailPlace(const StorageObject* storage, DLDataType dtype, std::uint64_t bytes,
                               std::int64_t offset, Span<const std::int64_t> shape);
  bool ShapeOf();
  bool ReshapeTensor();
  [[gnu::cold]] bool CheckElements(const DLTensor& tensor, Span<const std::int64_t> shape);
  bool DeviceCopy();
  bool AllocTuple(std::int32_t kind, Word tag, Word dst, Span<const Word> fields);
  bool GetField();
  bool GetTag();
  bool If(bool* taken);
  [[gnu::cold]] void DropOther(Object* object);
  [[gnu::cold]] bool StopItself();
  bool CallKernelSlowPath(const Word* pc);
  bool FinishKernel(const RewireFFIAny& returned);
  [[gnu::cold]] bool FailKernel(Word index);
  bool TakeReturned(RewireFFIAny returned, RewireFFIAny* out);
  [[gnu::cold]] bool TakeReturnedArray(const RewireFFIAny& returned, RewireFFIAny* out);
  [[gnu::cold]] bool TakeReturnedObject(const RewireFFIAny& returned, RewireFFIAny* out);
  bool AppendArgument(const RewireFFIAny& value, bool objects);
  bool CheckWritten(std::uint32_t position);
  // Checks the call whose arguments are in run.args: whether the row has a call with so many arguments, and
  // whether written arguments share memory only as the row allows.
  bool CheckCall(const LinkedKernel& kernel, Word count, Word outputs);
  [[gnu::cold]] bool CheckOverlaps(const LinkedKernel& kernel, Word count, Word outputs);
  [[gnu::cold]] bool AlignArgument(std::uint32_t position, const LinkedKernel& kernel, bool written);
  void DropTemporaries();

  // Outputs in the caller's memory.
  OutputSlot* SlotHere();
  bool MemoryHere(DLDataType dtype, Span<const std::int64_t> shape, DLDevice device,
                  const OutputSlot** memory);
  bool FillOutput(const OutputSlot& slot, std::uint64_t bytes);
  [[gnu::cold]] bool AskForMemory(OutputSlot* slot, std::uint64_t bytes);
  TensorObject* NewTensor(const LinkedDevice& device, DLDataType dtype, Span<const std::int64_t> shape);
  TensorObject* TensorOver(const OutputSlot& slot, DLDataType dtype, Span<const std::int64_t> shape);
  bool BindDestinations(std::uint32_t function);
  bool CarryDestinations(std::uint32_t* destinations);
  bool FindLeaves(const RewireFFIAny& value, const Function& function);
  bool FinishOutputs(const RewireFFIAny& value);
  bool CheckLeaf(const Function& function, std::uint32_t leaf, OutputSlot* slot, RewireFFIAny* value);
  [[gnu::cold]] bool PutAside(const OutputSlots& slots, RewireFFIAny* value);
  bool CopyLeaf(const OutputSlot& slot, const RewireFFIAny& value);

  // Devices (interpreter_devices.cc). One end of a copy: memory, where it is, and the tensor over it, or
  // null if it stays anyway until the call returns.
  struct CopyEnd {
    void* data;
    DLDevice device;
    TensorObject* tensor;
  };
  bool CopyBetween(const CopyEnd& from, const CopyEnd& to, std::uint64_t bytes);
  bool CopyOn(DeviceStreams::Stream* stream, const CopyEnd& from, const CopyEnd& to, std::uint64_t bytes);
  [[gnu::cold]] bool CopyOverHost(DeviceStreams::Stream* source, DeviceStreams::Stream* target,
                                  const CopyEnd& from, const CopyEnd& to, std::uint64_t bytes);
  bool MustStage(const DeviceStreams::Stream& stream, const CopyEnd& to, std::uint64_t bytes);
  [[gnu::cold]] bool CopyStaged(DeviceStreams::Stream* stream, const CopyEnd& from, const CopyEnd& to,
                                std::uint64_t bytes);
  bool KeepForCopy(DeviceStreams::Stream* stream, DeviceWork::Use use, const CopyEnd& end,
                   std::uint64_t bytes);
  bool ToHost(const TensorObject* tensor, void* to, std::uint64_t bytes, WaitCause cause);
  DeviceStreams::Source Here() const;
  bool RefuseRecording(const char* why);
  bool CheckRecordedCall(std::uint32_t kernel);
  bool RefuseRecordedCall(std::uint32_t kernel, const char* how);
  [[gnu::cold, gnu::noinline]] bool StaysInReplays(const TensorObject* tensor) const;
  void NoteFlights();
  [[gnu::cold, gnu::noinline]] bool LiesInOutput(const MemoryRange& memory) const;
  bool FindStream(DLDevice device, DeviceStreams::Stream** stream);
  bool ReadyToWrite(const MemoryRange& memory, WaitCause cause);
  Status WaitForWork(DeviceStreams::Stream* stream, WaitCause cause);
  Status TakeFailure();
  bool WaitFor(DeviceStreams::Stream* stream, WaitCause cause);
  bool WaitToUse(DeviceWork::Use use, const MemoryRange& memory, WaitCause cause);
  [[gnu::cold]] bool WaitForArguments(std::uint32_t count, std::uint32_t first_output);
  // Before a kernel call: whether to go on, and whether its arguments can be read.
  bool CheckBeforeCall(std::uint32_t count, std::uint32_t first_output) {
    const bool plain = !vm_.work.in_flight() && !vm_.streams.recording();
    return CheckInterrupts() && (plain || WaitForArguments(count, first_output));
  }
  Status FinishWork(bool ok);
  Status LeaveWork();
  [[gnu::cold]] bool FailDevice(const Status& failure);

  // Once destinations_ is that of a frame of `function`.
  void FindPlan(std::uint32_t function) { plan_ = destinations_ == kNone ? nullptr : &rep_.plans[function]; }
  std::uint32_t SiteAt(const Word* pc) const { return plan_->SiteAt(static_cast<std::size_t>(pc - code_)); }

  // Frames.
  RewireFFIAny EndRun(bool ok);
  void TakeInputs(std::uint32_t count, const RewireFFIAny* inputs, bool bound);
  [[gnu::cold]] bool PrepareFrame(Word function);
  [[gnu::cold]] bool FailDepth();
  void Begin(const LinkedFunction& callee, const Frame& frame);
  bool Enter(Word function, const Word* return_pc, Word dst, std::uint32_t destinations);
  [[gnu::cold, gnu::noinline]] bool EnterSlowPath(Frame frame);
  bool EnterCall();
  bool EnterClosure();
  bool Leave(const RewireFFIAny& value);
  [[gnu::cold]] void Unwind();

  // Registers.
  RewireFFIAny& Reg(Word index) { return Reg(registers_, index); }
  // The same where `registers`, which is registers_, is at hand.
  RewireFFIAny& Reg(RewireFFIAny* registers, Word index) {
    REWIRE_ASSERT(registers == registers_ && registers + index < vm_.run.stack.data() + vm_.run.stack.size(),
                  "register {} of the frame at {}", index, vm_.run.frames.back().base);
    return registers[index];
  }
  // Takes over the value's reference and releases the register's former value.
  void Put(Word index, const RewireFFIAny& value) { Put(registers_, index, value); }
  void Put(RewireFFIAny* registers, Word index, const RewireFFIAny& value) {
    RewireFFIAny& reg = Reg(registers, index);
    const RewireFFIAny before = reg;
    reg = value;
    heap_.Release(before);
  }
  const TensorObject* Tensor(Word index);  // null, with the error set, if the register holds something else
  // The fast path of ReadInteger: kernels compute sizes as scalars of i64. False means that the slow path
  // must look.
  bool ReadIntegerFastPath(const RewireFFIAny& value, std::int64_t* out) const {
    if (REWIRE_LIKELY(value.type_index == kTensorKind)) {
      const DLTensor& dl = TensorOf(value)->tensor;
      if (REWIRE_UNLIKELY(dl.ndim != 0) || REWIRE_UNLIKELY(dl.dtype != kInt64)) return false;
      if (REWIRE_UNLIKELY(!IsHostDevice(dl.device))) return false;
      const std::uint32_t interrupts = vm_.interrupts.flags();
      if (REWIRE_UNLIKELY((interrupts & Interrupts::kInFlight) != 0)) return false;
      __builtin_memcpy(out, static_cast<const char*>(dl.data) + dl.byte_offset, sizeof(*out));
      return true;
    }
    *out = value.v_int64;
    return IsIntegerKind(value.type_index);
  }
  // Reads an integer scalar of any width. Common forms are handled here, the others out of line.
  bool ReadInteger(const RewireFFIAny& value, const char* what, std::int64_t* out) {
    if (ReadIntegerFastPath(value, out)) return true;
    std::int64_t read = 0;  // a local, so that `*out` itself can stay in a register
    if (!ReadIntegerSlowPath(value, what, &read)) return false;
    *out = read;
    return true;
  }
  bool ReadIntegerSlowPath(const RewireFFIAny& value, const char* what, std::int64_t* out);
  bool ReadShape(Word index, std::int64_t* dims, std::uint32_t* rank, bool allow_scalar);
  TensorObject* Box(const RewireFFIAny& integer);
  TensorObject* HostTensor(DLDataType dtype, const std::int64_t* shape, std::uint32_t rank);

  // Limits. A list or a frame of so many registers takes as long as a hundred instructions, and a loop may
  // have thousands of them. So each of them asks whether to go on.
  static constexpr std::uint32_t kLongList = 256;
  // How many instructions may be executed before the loop asks again. Zero after a failure.
  std::uint64_t Refuel();
  bool CheckInterrupts();

  // Failures: record an error about the instruction at pc_ and return false.
  [[gnu::cold]] bool Fail(StatusCode code, const Message& what);
  template <typename First, typename... Rest>
  bool Fail(StatusCode code, MessageFormat<1 + sizeof...(Rest)> format, const First& first,
            const Rest&... rest) {
    return FailWords(
        {format.text(), message_internal::TagAndKinds<First, Rest...>(static_cast<unsigned>(code))},
        message_internal::WordOf(first), message_internal::WordOf(rest)...);
  }
  template <typename... Words>
  [[gnu::cold, gnu::noinline]] bool FailWords(message_internal::Layout layout, Words... words) {
    return Fail(static_cast<StatusCode>(layout.tag()), Message(layout, words...));
  }
  [[gnu::cold]] bool FailMemory(std::uint64_t bytes);
  [[gnu::cold]] bool FailKind(Word index, const char* expected);
  [[gnu::cold]] bool AskObserver();
  [[gnu::cold]] bool Observe();
  [[gnu::cold]] bool ObserveKernel(const Observer::KernelCall& call);
  // Calls code of the host that is no kernel: an observer, or an output's allocator. If it throws, returns
  // false with an error that names it.
  template <typename Call>
  bool CallHost([[maybe_unused]] const char* who, const Call& call) {
#if defined(__cpp_exceptions)
    try {
      call();
    } catch (...) {
      return FailThrown(who);
    }
#else
    call();
#endif
    return true;
  }
  // Only for a catch (...): makes the exception the run's error.
  [[gnu::cold]] bool FailThrown(const char* who);

  Machine& vm_;
  const ProgramRep& rep_;
  ObjectHeap& heap_;
  const LinkedKernel* kernels_;
  const RewireFFIAny* constants_;

  // Set when the run enters its function.
  const Word* pc_;
  const Word* code_;  // of the current function
  RewireFFIAny* registers_;
  const FunctionPlan* plan_;  // of the current function; null if no output is bound
  std::uint32_t destinations_ =
      kNone;  // destinations of the current frame, an offset in run.destinations; kNone if no output is bound
  std::uint64_t steps_left_;         // steps beyond the loop's current portion
  bool wants_instructions_ = false;  // of the observer; asked once
  bool wants_kernels_ = false;
  Status& status_;
  RewireFFIAny result_;  // set when the run has returned
};

}  // namespace rewire
