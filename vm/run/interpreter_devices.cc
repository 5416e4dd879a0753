// SPDX-License-Identifier: Apache-2.0
//
// Copies between devices, and the places where the host waits for them.
//
// Work is only enqueued: a copy is under way when its instruction is done. The host waits where it reads
// something that a device has not finished, and when the call ends.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

// "main@12 (%3 = invoke_packed add(%1), outputs=0)"
std::string PlaceText(const Module& module, DeviceStreams::Source source) {
  const Function& function = module.functions[source.function];
  return Format("{}@{} ({})", function.name, source.pc, ShortInstructionText(module, function, source.pc));
}

}  // namespace

DeviceStreams::Source Interpreter::Here() const {
  return {vm_.run.frames.back().function, static_cast<std::uint32_t>(pc_ - code_)};
}

bool Interpreter::FailDevice(const Status& failure) {
  return Fail(failure.code(), failure.error().message());
}

// Tells the interpreter's fast paths whether memory of the host is in flight.
void Interpreter::NoteFlights() {
  if (vm_.work.in_flight() || vm_.streams.recording()) {
    vm_.interrupts.Set(Interrupts::kInFlight);
  } else {
    vm_.interrupts.Clear(Interrupts::kInFlight);
  }
}

bool Interpreter::RefuseRecording(const char* why) {
  return Fail(StatusCode::kUnsupported, "the run cannot be recorded: {}", why);
}

// A kernel whose library says what it does with its arguments.
static bool IsDeclared(const PackedFunction& kernel) {
  return kernel.row != nullptr && kernel.row->arguments != nullptr;
}

// While a run is recorded: whether the kernel call before this one need not run again in a replay, as far as
// WaitForArguments could not tell. A kernel that nobody has declared must have given its work to a device.
// `kernel` is the one that is called now; kNone at the end.
bool Interpreter::CheckRecordedCall(std::uint32_t kernel) {
  const std::uint32_t last = vm_.recorder.NoteCall(kernel);
  const bool asked = std::exchange(vm_.stream_asked, false);
  return last == kNone || asked || IsDeclared(kernels_[last].function) || RefuseRecordedCall(last, "runs on");
}

bool Interpreter::RefuseRecordedCall(std::uint32_t kernel, const char* how) {
  return Fail(StatusCode::kUnsupported, "the run cannot be recorded: kernel '{}' {} the host",
              kernels_[kernel].import->name, how);
}

// While a run is recorded: whether the host may read this tensor. Constants stay, and what the run itself has
// made on the host follows from shapes. Other memory is the caller's and may hold something else in a replay.
bool Interpreter::StaysInReplays(const TensorObject* tensor) const {
  if (tensor->local == kUncounted) return true;
  if (tensor->storage == nullptr || tensor->storage->local >= kSharing) return false;
  return !LiesInOutput(RangeOf(tensor->tensor));
}

// Whether this memory is part of a bound output of the run.
bool Interpreter::LiesInOutput(const MemoryRange& memory) const {
  if (vm_.outputs.empty()) return false;
  for (const OutputSlot& slot : vm_.outputs.Of(vm_.run.frames[0].function).leaves) {
    if (slot.mode != OutputSlot::kUnbound && slot.extent().Overlaps(memory)) return true;
  }
  return false;
}

// Waits for one stream, or for all if it is null, also where one of them has failed: they may all use the
// caller's memory.
Status Interpreter::WaitForWork(DeviceStreams::Stream* stream, WaitCause cause) {
  if (vm_.streams.recording()) return DeviceWork::RefuseWait(cause);
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  bool told = true;
  for (std::uint32_t i = 0; i < vm_.streams.size(); ++i) {
    DeviceStreams::Stream& each = vm_.streams[i];
    if (!each.busy || (stream != nullptr && stream != &each)) continue;
    const DeviceStreams::Source last = each.last;
    const auto start = wants_kernels_ ? now() : std::chrono::steady_clock::duration::zero();
    vm_.work.Wait(&each, cause);
    if (!wants_kernels_ || !told) continue;
    const auto end = now();
    told = CallHost("the observer", [&] {
      vm_.observer->OnWait({rep_.module(), each.device, last.function, last.pc, cause,
                            std::chrono::nanoseconds(start).count(), std::chrono::nanoseconds(end).count()});
    });
  }
  NoteFlights();
  return told ? TakeFailure() : status_;
}

// TakeFailure takes what devices have failed to do and nobody has been told. It names what gave them the
// work.
Status Interpreter::TakeFailure() {
  const DeviceStreams::Failure failure = vm_.streams.TakeFailure();
  if (failure.status || !failure.placed) return failure.status;
  const Module& module = rep_.module();
  const bool one = failure.first.function == failure.last.function && failure.first.pc == failure.last.pc;
  return rewire::Fail(failure.status.code(), "{}; {} enqueued the work that failed{}{}",
                      failure.status.error().message(), PlaceText(module, failure.first),
                      one ? "" : ", or an instruction after it, up to ",
                      one ? std::string() : PlaceText(module, failure.last));
}

bool Interpreter::WaitFor(DeviceStreams::Stream* stream, WaitCause cause) {
  const Status waited = WaitForWork(stream, cause);
  return waited || FailDevice(waited);
}

// Before the host uses this memory.
bool Interpreter::WaitToUse(DeviceWork::Use use, const MemoryRange& memory, WaitCause cause) {
  while (DeviceStreams::Stream* stream = vm_.work.Blocking(use, memory)) {
    if (!WaitFor(stream, cause)) return false;
  }
  return true;
}

// Before a kernel on the host uses its arguments, or an observer reads anything.
bool Interpreter::WaitForArguments(std::uint32_t count, std::uint32_t first_output) {
  if (wants_kernels_ || wants_instructions_) return WaitFor(nullptr, WaitCause::kObserver);
  const Word index = pc_[WordOf(Opcode::kInvokePacked, "kernel")];
  if (vm_.streams.recording() && !CheckRecordedCall(index)) return false;
  const KernelImport& import = *kernels_[index].import;
  const Span<const RewireFFIAny> args(vm_.run.args.data(), count);
  const bool recording = vm_.streams.recording();
  bool stays = true;
  bool on_device = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const RewireFFIAny& arg = args[i];
    if (arg.type_index == kAdtKind) return WaitFor(nullptr, WaitCause::kHostKernel);
    if (arg.type_index != kTensorKind) continue;
    TensorObject* tensor = TensorOf(arg);
    if (!IsHostDevice(tensor->tensor.device)) {
      on_device = true;
      continue;
    }
    const auto use = IsWritten(import, i, first_output) ? DeviceWork::Use::kWrites : DeviceWork::Use::kReads;
    if (!WaitToUse(use, RangeOf(tensor->tensor), WaitCause::kHostKernel)) return false;
    stays = stays && (!recording || StaysInReplays(tensor));
  }
  if (!recording) return true;
  // Refused before the kernel has changed anything, because the run is then done again without a recording.
  const PackedFunction& kernel = kernels_[index].function;
  const bool runs_here = IsDeclared(kernel) ? (kernel.row->traits & REWIRE_KERNEL_IMPURE) != 0 : !on_device;
  if (stays && !runs_here) return true;
  return RefuseRecordedCall(index, runs_here ? "runs on" : "uses memory of");
}

// The last thing of a run: what the caller gets is ready. After an error too, because queued work may still
// use the caller's memory. A run that was cancelled meanwhile, or whose deadline passed, has no result.
Status Interpreter::FinishWork(bool ok) {
  vm_.open_ends &= static_cast<std::uint8_t>(~Machine::kStarted);
  const Status finished = WaitForWork(nullptr, ok ? WaitCause::kEnd : WaitCause::kFailure);
  return finished ? vm_.interrupts.Check() : finished;
}

// The last thing of a run whose work the caller waits for later (machine_async.cc).
Status Interpreter::LeaveWork() {
  if (vm_.streams.recording() && !CheckRecordedCall(kNone)) return status_;
  vm_.open_ends |= Machine::kStarted;
  return {};
}

// Notes what a copy on `stream` does with memory of the host.
bool Interpreter::KeepForCopy(DeviceStreams::Stream* stream, DeviceWork::Use use, const CopyEnd& end,
                              std::uint64_t bytes) {
  if (!vm_.work.Keep(stream, use, RangeOf(end.data, bytes), end.tensor)) {
    return WaitFor(nullptr, WaitCause::kManyCopies);
  }
  NoteFlights();
  return true;
}

bool Interpreter::CopyOn(DeviceStreams::Stream* stream, const CopyEnd& from, const CopyEnd& to,
                         std::uint64_t bytes) {
  const DeviceApi& api = *stream->api;
  const int code = api.copy(api.context, to.data, to.device, from.data, from.device, bytes, stream->stream);
  if (code != REWIRE_DEVICE_OK) {
    const Status failure = DeviceFailure(api, stream->device, code);
    return Fail(failure.code(), "the copy failed: {}", failure.error().message());
  }
  DeviceWork::Note(stream, Here());
  return true;
}

// Between two devices of different kinds: over memory of the host.
bool Interpreter::CopyOverHost(DeviceStreams::Stream* source, DeviceStreams::Stream* target,
                               const CopyEnd& from, const CopyEnd& to, std::uint64_t bytes) {
  const auto elements = static_cast<std::int64_t>(bytes);
  TensorObject* staging = HostTensor(kUInt8, &elements, 1);
  if (staging == nullptr) return false;
  const CopyEnd middle{staging->tensor.data, kHost, staging};
  const bool ok = CopyOn(source, from, middle, bytes) && WaitFor(source, WaitCause::kTransfer) &&
                  CopyOn(target, middle, to, bytes) && WaitFor(target, WaitCause::kTransfer);
  heap_.Release(staging);
  return ok;
}

// Whether a copy to memory of the host goes by way of pinned memory: the driver would let the host wait, and
// nobody wants to wait yet. A recorded copy must go to its place by itself.
bool Interpreter::MustStage(const DeviceStreams::Stream& stream, const CopyEnd& to, std::uint64_t bytes) {
  if (!vm_.async || vm_.outputs.require_zero_copy || vm_.streams.recording() || !PinsFor(*stream.api, bytes))
    return false;
  const StorageObject* storage = to.tensor != nullptr ? to.tensor->storage : nullptr;
  if (storage != nullptr && storage->is_pinned()) return false;
  return !IsPinned(*stream.api, stream.device, to.data, bytes);
}

// The bytes are moved to their place when the host has waited for the copy (DeviceWork::Wait).
bool Interpreter::CopyStaged(DeviceStreams::Stream* stream, const CopyEnd& from, const CopyEnd& to,
                             std::uint64_t bytes) {
  const auto elements = static_cast<std::int64_t>(bytes);
  TensorObject* staging =
      NewHeapTensor(heap_, {stream->device, stream->api, kPinned}, kUInt8, {&elements, 1});
  if (staging == nullptr) return FailMemory(bytes);
  if (!CopyOn(stream, from, {staging->tensor.data, kHost, staging}, bytes)) {
    heap_.Release(staging);
    return false;
  }
  // Only an output's memory is not the VM's own.
  for (OutputSlot& slot : vm_.outputs.Of(vm_.run.frames[0].function).leaves) {
    if (slot.mode != OutputSlot::kUnbound && slot.data == to.data) slot.staged = true;
  }
  if (vm_.work.Keep(stream, DeviceWork::Use::kWrites, RangeOf(to.data, bytes), to.tensor, staging)) {
    NoteFlights();
    return true;
  }
  const bool done = WaitFor(nullptr, WaitCause::kManyCopies);
  if (done) std::memcpy(to.data, staging->tensor.data, bytes);
  heap_.Release(staging);
  return done;
}

// The stream of a device; null for the host. Returns false after a failure.
bool Interpreter::FindStream(DLDevice device, DeviceStreams::Stream** stream) {
  *stream = nullptr;
  if (IsHostDevice(device)) return true;
  Status failed;
  *stream = vm_.streams.Find(device, &failed);
  return *stream != nullptr || FailDevice(failed);
}

// Before the VM itself writes memory of the host that may be an output's: shapes, fills, and copies by the
// host. Copies that still use it come first. A replay would not write it again. Returns false after a
// failure.
bool Interpreter::ReadyToWrite(const MemoryRange& memory, WaitCause cause) {
  if (vm_.streams.recording() && LiesInOutput(memory)) return RefuseRecording("the host writes an output");
  return !vm_.work.in_flight() || WaitToUse(DeviceWork::Use::kWrites, memory, cause);
}

// Enqueues a copy. What it reads and writes must stay until it is done, so objects are given with their data.
bool Interpreter::CopyBetween(const CopyEnd& from, const CopyEnd& to, std::uint64_t bytes) {
  if (bytes == 0) return true;  // an empty tensor may have no memory
  DeviceStreams::Stream* source = nullptr;
  DeviceStreams::Stream* target = nullptr;
  if (!FindStream(from.device, &source) || !FindStream(to.device, &target)) return false;
  if (source == nullptr && target == nullptr) {
    if (vm_.work.in_flight() &&
        !WaitToUse(DeviceWork::Use::kReads, RangeOf(from.data, bytes), WaitCause::kHostKernel)) {
      return false;
    }
    if (!ReadyToWrite(RangeOf(to.data, bytes), WaitCause::kHostKernel)) return false;
    if (vm_.streams.recording()) return RefuseRecording("the host copies its own memory");
    std::memmove(to.data, from.data, bytes);
    return true;
  }
  if (source == target) return CopyOn(source, from, to, bytes);
  if (source == nullptr) {
    if (vm_.work.in_flight() &&
        !WaitToUse(DeviceWork::Use::kReads, RangeOf(from.data, bytes), WaitCause::kTransfer)) {
      return false;
    }
    return CopyOn(target, from, to, bytes) && KeepForCopy(target, DeviceWork::Use::kReads, from, bytes);
  }
  if (target == nullptr) {
    if (vm_.work.in_flight() &&
        !WaitToUse(DeviceWork::Use::kWrites, RangeOf(to.data, bytes), WaitCause::kTransfer)) {
      return false;
    }
    if (MustStage(*source, to, bytes)) return CopyStaged(source, from, to, bytes);
    return CopyOn(source, from, to, bytes) && KeepForCopy(source, DeviceWork::Use::kWrites, to, bytes);
  }
  if (source->api != target->api) return CopyOverHost(source, target, from, to, bytes);
  // The copy starts when its source is ready, and the source's memory is used again only after the copy.
  const Status before = DeviceStreams::Order(source, target);
  if (!before) return FailDevice(before);
  if (!CopyOn(target, from, to, bytes)) return false;
  const Status after = DeviceStreams::Order(target, source);
  return after || FailDevice(after);
}

// Copies a small tensor to a buffer of the host and waits for it.
bool Interpreter::ToHost(const TensorObject* tensor, void* to, std::uint64_t bytes, WaitCause cause) {
  const DLTensor& dl = tensor->tensor;
  char* data = static_cast<char*>(dl.data) + dl.byte_offset;
  if (IsHostDevice(dl.device)) {
    if (vm_.work.in_flight() && !WaitToUse(DeviceWork::Use::kReads, RangeOf(data, bytes), cause))
      return false;
    if (vm_.streams.recording() && !StaysInReplays(tensor)) {
      return RefuseRecording("the host reads a value that may change");
    }
    if (bytes != 0) std::memcpy(to, data, bytes);
    return true;
  }
  DeviceStreams::Stream* stream = nullptr;
  if (!FindStream(dl.device, &stream)) return false;
  return CopyOn(stream, {data, dl.device, nullptr}, {to, kHost, nullptr}, bytes) && WaitFor(stream, cause);
}

bool Interpreter::DeviceCopy() {
  constexpr Opcode kOp = Opcode::kDeviceCopy;
  // A copy takes as long as its tensor is large.
  if (!CheckInterrupts()) return false;
  const Word source_register = pc_[WordOf(kOp, "src")];
  if (IsIntegerKind(Reg(source_register).type_index)) {
    TensorObject* boxed = Box(Reg(source_register));
    if (boxed == nullptr) return false;
    Put(source_register, MakeAny(kTensorKind, boxed));
  }
  if (Tensor(source_register) == nullptr) return false;
  TensorObject* source = TensorOf(Reg(source_register));
  const LinkedDevice& from = rep_.devices[pc_[WordOf(kOp, "src_device")]];
  const LinkedDevice& to = rep_.devices[pc_[WordOf(kOp, "dst_device")]];
  const DLTensor& dl = source->tensor;
  if (!IsSameDevice(dl.device, from.device)) {
    return Fail(StatusCode::kRuntimeFailed,
                "the tensor is on device {}:{}, the instruction copies from {}:{}", DeviceTypeOf(dl.device),
                dl.device.device_id, DeviceTypeOf(from.device), from.device.device_id);
  }
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  const std::uint64_t bytes = TensorBytes(dl.dtype, shape).value_or(0);
  const bool pins =
      from.api != nullptr && IsHostDevice(to.device) && PinsFor(*from.api, bytes) && !vm_.memory.bounded();
  TensorObject* copy = NewTensor(pins ? LinkedDevice{from.device, from.api, kPinned} : to, dl.dtype, shape);
  if (copy == nullptr) return false;
  const CopyEnd here{static_cast<char*>(dl.data) + dl.byte_offset, dl.device, source};
  if (!CopyBetween(here, {copy->tensor.data, copy->tensor.device, copy}, bytes)) {
    heap_.Release(copy);
    return false;
  }
  Put(pc_[WordOf(kOp, "dst")], MakeAny(kTensorKind, copy));
  return true;
}

}  // namespace rewire
