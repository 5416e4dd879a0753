// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/virtual_machine.h>.
//
// VirtualMachine: runs the functions of a Program. It is cheap to make, and one Program may have many.
//
// Threads: a VM serves one thread at a time. Different VMs of one Program may run at once on different
// threads. While a VM runs, other threads may call only Cancel. A second thread that invokes a running VM
// gets kBusy.
//
// Callbacks: during a call, the VM may call code of the host: kernels, the observer, an output's allocator,
// and the deleter of memory that is released. This code may call:
// - Cancel, which ends the run, if the call is a run;
// - program, result, TryOutput and TryInputReport, which show the state before the call, except that a run
//   may have dropped the old result; bytes_held and bytes_peak, which show the state at that moment;
// - anything of other VMs, including Program::TryRun.
//
// Every other call on the same VM fails with kBusy and changes nothing. The VM must not be destroyed or
// moved. If an observer or an output's allocator throws, the run ends with kRuntimeFailed.
//
// A VM that was moved from is empty: every call fails with kInvalidArgument, and result() is empty.
//
// Memory: a VM takes memory from the Program's allocator. After each call it keeps what the next call with
// the same shapes needs and returns the rest. From the second call with the same shapes on, it allocates
// nothing, if earlier results have been released. After an error the VM is usable and holds what it held
// before.
//
// TryX returns a Status or Result. Where there is also an X, it does the same and throws rewire::Error, if
// exceptions are enabled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/device_waits.h"
#include "rewire/vm/input.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/output.h"
#include "rewire/vm/program.h"
#include "rewire/vm/shared_arena.h"
#include "rewire/vm/value.h"

namespace rewire {

struct Machine;  // run/machine.h

struct VmOptions {
  Limits limits;
  // The VM's memory comes from here. Set at most one of the two. If neither is set, the program's allocator
  // is used.
  StaticMemory memory;
  SharedArena arena;
};

class REWIRE_API VirtualMachine {
 public:
  explicit VirtualMachine(const Program& program, const Limits& limits = {});
  // Makes a VM in memory of a known size. Errors: kOutOfMemory if a StaticMemory is too small for the VM
  // itself; kInvalidArgument if both kinds of memory are set. Whether a run fits shows only when it runs;
  // Program::TryMemoryBound tells it beforehand.
  static Result<VirtualMachine> TryMake(const Program& program, const VmOptions& options);
  ~VirtualMachine();
  VirtualMachine(VirtualMachine&&) noexcept;
  VirtualMachine& operator=(VirtualMachine&&) noexcept;

  const Program& program() const;

  // Sets an input. It stays set until it is set again or cleared. Errors: kInvalidArgument, with function,
  // input, expected and given, if it does not match the signature.
  //
  // Some memory is copied even under InputMode::kBorrow: memory that is strided, not aligned to its elements,
  // or on another device than the signature's. The caller may then reuse it when this call returns.
  Status TrySetInput(const InputRef& input, const TensorView& tensor, InputMode mode = InputMode::kBorrow);
  // Shares a value: a Tensor, a tree of ADTs or an integer. A Tensor is copied under the same conditions as
  // above. Tensors inside trees are never copied.
  Status TrySetInput(const InputRef& input, const Value& value);
  // Sets all inputs of a function, in order, borrowed.
  Status TrySetInputs(std::string_view function, Span<const TensorView> tensors);
  Status TrySetInputs(std::uint32_t function, Span<const TensorView> tensors);
  // Returns whether an input is a copy, and why. Errors: kInvalidArgument if the input is not set.
  Result<InputReport> TryInputReport(const InputRef& input) const;
  // Returns an input as the next run would read it, without a copy. Memory that is borrowed stays borrowed,
  // and that of a donated input holds what the last run wrote. Empty (kNone) if the input is not set. Waits
  // for work on devices, and ends a recording.
  Result<Value> TryInput(const InputRef& input) const;
  Status TryClearInputs(std::string_view function = {});

  // State (docs/state.md): the inputs of a function that are set, tensors, integers and tuples of them, as
  // bytes or as a file. Donated inputs hold what the last run wrote. Inputs on a device are copied to the
  // host. The same VM, another one, or a C program of vm-aot (compiler/aot/state.h) goes on from there. In
  // librewire_prepare.
  //
  // Errors: kNotFound for the function. kUnsupported, with the input's name, for a closure, a storage, or a
  // tree whose fields the signature does not name. kIo, and the file is then as it was.
  Result<Array<std::byte>> TryState(std::string_view function = {}) const;
  Status TrySaveState(const std::string& path, std::string_view function = {}) const;
  // Sets the inputs that a state has, to copies that the VM owns, and leaves the others. Returns the function
  // that they belong to. The executable must be the one that the state was saved with (content_hash.h).
  //
  // Errors: kInvalidFile for damaged bytes and for other files; kUnsupported for another version;
  // kInvalidArgument if the state is another executable's, or a tensor does not match the signature. No input
  // has then changed.
  Result<std::uint32_t> TrySetState(Span<const std::byte> state);
  Result<std::uint32_t> TryLoadState(const std::string& path);

  // Binds an output to the caller's memory, until it is bound again or cleared. The output belongs to the
  // entry function, or to the function of a handle. The memory must stay until then.
  //
  // A run makes the result directly in that memory where the output plan allows it (Program::ExplainOutput
  // tells), and otherwise copies it there. The values are those of an unbound run. After a failed run the
  // contents of the memory are unspecified.
  //
  // Errors: kInvalidArgument if there is no memory, if it is const or exceeds the address space, or if its
  // strides make elements share memory. Also if its dtype, shape or device cannot match the signature.
  //
  // Overlap: these rules hold for all forms of binding below. If the memory overlaps an input of the run, the
  // output is copied there at the end of the run. If it overlaps another bound output, a constant, a
  // parameter or the VM's own memory, the run fails with kInvalidArgument. Empty memory overlaps nothing.
  Status TrySetOutput(const OutputRef& output, const TensorView& tensor);
  // The same, and the VM keeps a reference to the tensor.
  Status TrySetOutput(const OutputRef& output, const Tensor& tensor);
  // For outputs whose size is known only during the run.
  Status TrySetOutput(const OutputRef& output, const OutputCapacity& capacity);
  Status TrySetOutput(const OutputRef& output, const OutputAllocator& allocator);
  // Lets an output take the memory of an input of the same function. The run then overwrites the input; use
  // this for state that is updated in place.
  //
  // Errors: kInvalidArgument if another output may return that input. After a failed run the contents of the
  // input's memory are unspecified.
  Status TryDonate(const InputRef& input, const OutputRef& output);
  Status TryClearOutput(const OutputRef& output);
  Status TryClearOutputs(std::string_view function = {});
  // If required, a run that would have to copy an output fails instead.
  Status TryRequireZeroCopy(bool required);

  // Runs a function with the inputs that are set. The empty name means the entry function. The VM keeps the
  // result until the next run.
  Status TryInvoke(std::string_view function = {});
  Status TryInvoke(std::uint32_t function);
  // Runs a function with these inputs, which are used for this call only.
  Result<Value> TryInvoke(std::string_view function, Span<const Value> inputs);

  // Runs a function with these inputs into these outputs, for this call only. Outputs that were bound before
  // are ignored until it returns. After the return, even after an error, the VM refers to none of the memory.
  // result() then has no data for the outputs given here.
  Status TryInvoke(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs);

  // Runs that go on after the call, for programs on devices (docs/devices.md).
  //
  // TryInvokeAsync runs a function with the inputs and outputs that are set, and returns when all of its work
  // has been given to devices. The host's own part of the run is done then. Until TryWait returns, the memory
  // of inputs, outputs and the observed results must stay, inputs must not be written, and results on the
  // host are not ready. A second run may be started meanwhile; its work comes after that of the first. Every
  // call that changes the VM waits by itself. In a VM with memory of a fixed size, or with an observer,
  // TryInvokeAsync waits before it returns.
  Status TryInvokeAsync(std::string_view function = {});
  // Waits for what TryInvokeAsync has started. A failure of that work is told here, or by the next run if
  // that comes first. It names the instruction that gave the work to its device.
  Status TryWait();
  // Gives later work on a device to the caller's stream, in place of the VM's own. `stream` is the driver's
  // handle: a CUstream or a cl_command_queue. It must stay until another is set or the VM ends, and the VM
  // frees memory in its order. Errors: kInvalidArgument if the executable does not use the device;
  // kUnsupported if the device has no streams.
  Status TrySetStream(DLDevice device, void* stream);
  // An event of the device's functions (RewireDeviceApi) that is reached when the device has done what the VM
  // has given it so far. Other streams and VMs may wait for it. It is the VM's, and set anew by its next run.
  Result<void*> TryDoneEvent(DLDevice device);
  // Lets later work of this VM on the device wait for an event, without the host.
  Status TryWaitForEvent(DLDevice device, void* event);
  // Runs a function and records its work on the device. Later runs of it with the inputs and outputs that are
  // set replay the recording. They read the same memory of inputs anew and write the same results. A driver
  // that records replays all in one call. Every call that changes the VM, and another run, end the recording.
  //
  // The host's own work is done once: results that nobody has bound keep it, and must not be written.
  //
  // Errors: those of a run. kUnsupported, with the instruction, if the host takes part in the run with more
  // than shapes and constants, or writes an output. Also if several devices do, if the device cannot record,
  // or if an output has an allocator. No recording is made then.
  Status TryRecord(std::string_view function = {});
  // Whether there is a recording, so that a run of its function replays it.
  bool recorded() const;
  // With `automatic`, runs record themselves. When a function has run twice with the same inputs and outputs
  // set, the third run is recorded as TryRecord does. Later ones replay it. Every output must be bound,
  // and none to an allocator, because a replay writes where the recorded run wrote. Results are those of
  // plain runs in every case. Whatever ends a recording begins the count anew.
  //
  // A run that cannot be recorded goes on as it always does. Recording is then not tried again, until this
  // function is called. A run that was cancelled or late while it was recorded does not count.
  Status TrySetAutomaticRecording(bool automatic);
  // The same, but it releases the bindings' owners before it returns, also after an error. If nobody else
  // holds the memory, its deleter has run.
  Status TryInvoke(std::string_view function, Span<const Value> inputs,
                   std::vector<OutputBinding>&& outputs) {
    const std::vector<OutputBinding> taken = std::move(outputs);
    return TryInvoke(function, inputs, Span<const OutputBinding>(taken));
  }

  // The last run's result. It is empty before the first run and after a failed one. A call that is refused,
  // for example because an input is missing, does not count as a run.
  //
  // Some results are tensors in the caller's memory: a bound output that was made in place, and a borrowed
  // input that the function returns. The latter holds even if its output is bound; the output's memory then
  // holds a copy.
  const Value& result() const;
  // One leaf of the result, by name or index. Errors: kNotFound, with similar names; kInvalidArgument if
  // there is no result.
  Result<Value> TryOutput(std::string_view name) const;
  Result<Value> TryOutput(std::uint32_t leaf) const;

  // The shape of a bound output in the last successful run. Errors: kInvalidArgument if there is none.
  Result<std::vector<std::int64_t>> TryOutputShape(const OutputRef& output) const;
  // Whether the last run made a bound output in place or copied it, and why.
  Result<OutputReport> TryOutputReport(const OutputRef& output) const;

  Status TrySetLimits(const Limits& limits);
  // Ends the current run with kCancelled. The run stops at its next instruction, inside kernels that check
  // for it, or at the latest when it would return and its devices have done what they were given. It ends
  // TryWait in the same way. Does nothing if no such call is going on, and never affects a later run. Any
  // thread may call it.
  void Cancel();
  // Later runs fail with kDeadlineExceeded if they are not finished at this time. A run is finished when its
  // call returns, an asynchronous one when TryWait does. time_point::max() means no deadline.
  Status TrySetDeadline(std::chrono::steady_clock::time_point deadline);

  // The observer is told of every instruction or kernel call, from the next run on. It is borrowed. Null
  // removes it. An observer makes the VM slower.
  Status TrySetObserver(Observer* observer);

  // Bytes that the VM now holds from its allocator, and the most it has held so far.
  std::uint64_t bytes_held() const;
  std::uint64_t bytes_peak() const;
  // How often this VM has waited for a device, and why.
  WaitCounts device_waits() const;
  // Releases the last result.
  Status TryDropResult();
  // Releases everything that no live value uses: free lists, stack, last result and the state of kernels. A
  // device that does not take its memory back is an error; the VM no longer uses that memory.
  Status TryTrim();

#if defined(__cpp_exceptions)
  void SetInput(const InputRef& input, const TensorView& tensor, InputMode mode = InputMode::kBorrow) {
    ThrowIf(TrySetInput(input, tensor, mode));
  }
  void SetInput(const InputRef& input, const Value& value) { ThrowIf(TrySetInput(input, value)); }
  void SetInputs(std::string_view function, Span<const TensorView> tensors) {
    ThrowIf(TrySetInputs(function, tensors));
  }
  Value Input(const InputRef& input) const { return Take(TryInput(input)); }
  Array<std::byte> State(std::string_view function = {}) const { return Take(TryState(function)); }
  void SaveState(const std::string& path, std::string_view function = {}) const {
    ThrowIf(TrySaveState(path, function));
  }
  std::uint32_t SetState(Span<const std::byte> state) { return Take(TrySetState(state)); }
  std::uint32_t LoadState(const std::string& path) { return Take(TryLoadState(path)); }
  void SetOutput(const OutputRef& output, const TensorView& tensor) { ThrowIf(TrySetOutput(output, tensor)); }
  void SetOutput(const OutputRef& output, const Tensor& tensor) { ThrowIf(TrySetOutput(output, tensor)); }
  void SetOutput(const OutputRef& output, const OutputCapacity& capacity) {
    ThrowIf(TrySetOutput(output, capacity));
  }
  void SetOutput(const OutputRef& output, const OutputAllocator& allocator) {
    ThrowIf(TrySetOutput(output, allocator));
  }
  void Donate(const InputRef& input, const OutputRef& output) { ThrowIf(TryDonate(input, output)); }
  void ClearOutputs(std::string_view function = {}) { ThrowIf(TryClearOutputs(function)); }
  void RequireZeroCopy(bool required) { ThrowIf(TryRequireZeroCopy(required)); }
  void SetLimits(const Limits& limits) { ThrowIf(TrySetLimits(limits)); }
  void SetDeadline(std::chrono::steady_clock::time_point deadline) { ThrowIf(TrySetDeadline(deadline)); }
  void SetObserver(Observer* observer) { ThrowIf(TrySetObserver(observer)); }
  void DropResult() { ThrowIf(TryDropResult()); }
  void Trim() { ThrowIf(TryTrim()); }
  void Invoke(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs) {
    ThrowIf(TryInvoke(function, inputs, outputs));
  }
  std::vector<std::int64_t> OutputShape(const OutputRef& output) const {
    return Take(TryOutputShape(output));
  }
  static VirtualMachine Make(const Program& program, const VmOptions& options) {
    return Take(TryMake(program, options));
  }
  void Invoke(std::string_view function = {}) { ThrowIf(TryInvoke(function)); }
  void InvokeAsync(std::string_view function = {}) { ThrowIf(TryInvokeAsync(function)); }
  void Wait() { ThrowIf(TryWait()); }
  void Record(std::string_view function = {}) { ThrowIf(TryRecord(function)); }
  void SetAutomaticRecording(bool automatic) { ThrowIf(TrySetAutomaticRecording(automatic)); }
  Value Invoke(std::string_view function, Span<const Value> inputs) {
    return Take(TryInvoke(function, inputs));
  }
  Tensor Output(std::string_view name) const { return Take(TryOutput(name)).tensor(); }
  Tensor Output(std::uint32_t leaf = 0) const { return Take(TryOutput(leaf)).tensor(); }
#endif

 private:
#if defined(__cpp_exceptions)
  static void ThrowIf(const Status& status) {
    if (!status) throw Error(status.error());
  }
  template <typename T>
  static T Take(Result<T> result) {
    if (!result) throw Error(result.error());
    return *std::move(result);
  }
#endif
  struct DeleteImpl {
    void operator()(Machine* impl) const;
  };
  explicit VirtualMachine(Machine* impl);
  std::unique_ptr<Machine, DeleteImpl> impl_;  // null after a move
};

}  // namespace rewire
