// SPDX-License-Identifier: Apache-2.0
// VirtualMachine: runs a Program's functions. Cheap to make; many per Program.
//
// Threads: one thread at a time uses a VM; different VMs of one Program run at once on different threads.
// Only Cancel may be called from another thread while a VM runs. A second thread that invokes a running VM
// gets kBusy.
//
// Memory: a VM takes memory from the Program's allocator, keeps what it needs for the next call of the same
// shapes and gives the rest back after each call. From the second call with the same shapes it takes none,
// provided that earlier results have been released. After any error the VM is usable and holds what it held
// before.
//
// Every operation has two forms: TryX returns a Status or Result, X throws rewire::Error (where exceptions
// are on).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/export.h"
#include "base/span.h"
#include "base/status.h"
#include "vm/limits.h"
#include "vm/observer.h"
#include "vm/outputs/output.h"
#include "vm/program.h"
#include "vm/shared_arena.h"
#include "vm/value.h"

namespace rewire {

// Whether an input refers to the caller's memory or gets its own copy.
enum class InputMode : std::uint8_t {
  kBorrow,  // the memory must stay and keep its meaning until the input is set again, cleared, or the VM is
            // destroyed
  kCopy,    // copied now; the caller's memory is free when the call returns
};

// Names an input of the entry function, or carries a resolved handle.
class InputRef {
 public:
  InputRef(InputHandle handle) : handle_(handle), kind_(kHandle) {}  // NOLINT: implicit on purpose
  InputRef(const char* name) : name_(name), kind_(kName) {}          // NOLINT
  InputRef(std::string_view name) : name_(name), kind_(kName) {}     // NOLINT
  InputRef(const std::string& name) : name_(name), kind_(kName) {}   // NOLINT
  InputRef(int index) : handle_{0, static_cast<std::uint32_t>(index)}, kind_(kIndex) {}  // NOLINT

 private:
  friend class VirtualMachine;
  InputHandle handle_;
  std::string_view name_;
  enum : std::uint8_t { kHandle, kName, kIndex } kind_;
};

struct VmOptions {
  Limits limits;
  // At most one of the two; neither: the program's allocator.
  StaticMemory memory;
  SharedArena arena;
};

// How an input lies before the program.
struct InputReport {
  bool copied = false;  // when it was set
  std::string reason;   // why; also, of one that was not, that some kernels need copies of it
};

class REWIRE_API VirtualMachine {
 public:
  explicit VirtualMachine(const Program& program, const Limits& limits = {});
  // In memory of a known size. kOutOfMemory when a StaticMemory does not even hold the VM; what a run needs
  // shows when it runs, and Program::TryMemoryBound says it before. kInvalidArgument for both kinds at once.
  static Result<VirtualMachine> TryMake(const Program& program, const VmOptions& options);
  ~VirtualMachine();
  VirtualMachine(VirtualMachine&&) noexcept;
  VirtualMachine& operator=(VirtualMachine&&) noexcept;

  const Program& program() const;

  // Sets an input until it is set again or cleared. Checked against the signature: kInvalidArgument with
  // function, input, expected and given. Memory that is strided, not aligned to its elements, or on another
  // device than the signature's is copied (and InputMode::kBorrow's promise then ends with the call).
  Status TrySetInput(const InputRef& input, const TensorView& tensor, InputMode mode = InputMode::kBorrow);
  // Shares a value: a Tensor, a tree of ADTs, an integer. Tensors in trees are never copied, others as above.
  Status TrySetInput(const InputRef& input, const Value& value);
  // All inputs of a function in order, borrowed.
  Status TrySetInputs(std::string_view function, Span<const TensorView> tensors);
  Status TrySetInputs(std::uint32_t function, Span<const TensorView> tensors);
  // Whether an input that is set is a copy, and why; kInvalidArgument when it is not set.
  Result<InputReport> TryInputReport(const InputRef& input) const;
  Status TryClearInputs(std::string_view function = {});

  // Binds an output of the entry function, or of a handle's, to the caller's memory until it is bound again
  // or cleared: results are made there where the plan allows (ExplainOutput says), and copied there
  // otherwise; the values are those of an unbound run. The memory must stay until then. After a failed run
  // its contents are unspecified. kInvalidArgument: const memory, a dtype, shape or device that cannot match
  // the signature.
  Status TrySetOutput(const OutputRef& output, const TensorView& tensor);
  // The same, and the VM keeps a reference to the tensor.
  Status TrySetOutput(const OutputRef& output, const Tensor& tensor);
  // For outputs whose size shows only when they are made.
  Status TrySetOutput(const OutputRef& output, const OutputCapacity& capacity);
  Status TrySetOutput(const OutputRef& output, const OutputAllocator& allocator);
  // The output takes the memory of an input of the same function, which the run then overwrites: state
  // updated in place. kInvalidArgument when another output may return that input. What the input's memory
  // holds after a failed run is unspecified.
  Status TryDonate(const InputRef& input, const OutputRef& output);
  Status TryClearOutput(const OutputRef& output);
  Status TryClearOutputs(std::string_view function = {});
  // A run that would have to copy an output fails instead.
  void RequireZeroCopy(bool required);

  // Runs a function over its set inputs. The empty name is the entry. The result is kept until the next run.
  Status TryInvoke(std::string_view function = {});
  Status TryInvoke(std::uint32_t function);
  // Runs a function over these inputs, for this call alone.
  Result<Value> TryInvoke(std::string_view function, Span<const Value> inputs);

  // Runs a function over these inputs into these outputs, for this call alone: outputs bound before are set
  // aside until it returns. When it has returned, also after an error, the VM refers to none of the memory;
  // result() has no data for the outputs given here.
  Status TryInvoke(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs);
  // The same, and the bindings' owners are gone when it returns, also after an error: the deleter of memory
  // that nobody else holds has run.
  Status TryInvoke(std::string_view function, Span<const Value> inputs,
                   std::vector<OutputBinding>&& outputs) {
    const std::vector<OutputBinding> taken = std::move(outputs);
    return TryInvoke(function, inputs, Span<const OutputBinding>(taken));
  }

  // The last run's result; none before the first and after one that failed (a call that is refused, for a
  // missing input or the like, is no run). A bound output that was made in place is a tensor over the
  // caller's memory, and so is a borrowed input that the function returns, whether its output is bound (a
  // copy then lies there) or not.
  const Value& result() const;
  // One leaf of it, by name or position. kNotFound, with near names; kInvalidArgument before a run.
  Result<Value> TryOutput(std::string_view name) const;
  Result<Value> TryOutput(std::uint32_t leaf) const;

  // The shape of a bound output in the last successful run; kInvalidArgument before one.
  Result<std::vector<std::int64_t>> TryOutputShape(const OutputRef& output) const;
  // Whether the last run made a bound output in place or copied it, and why.
  Result<OutputReport> TryOutputReport(const OutputRef& output) const;

  void SetLimits(const Limits& limits);
  // A run that is going on, or the next one when none is, ends with kCancelled at its next instruction. Any
  // thread.
  void Cancel();
  // Runs from now on end with kDeadlineExceeded once this has passed. time_point::max(): no deadline.
  void SetDeadline(std::chrono::steady_clock::time_point deadline);

  // Told of every instruction or kernel call from the next run on; borrowed. Null: nobody. Slows the VM down.
  void SetObserver(Observer* observer);

  // Bytes held from the allocator now, and the most so far.
  std::uint64_t bytes_held() const;
  std::uint64_t bytes_peak() const;
  // Lets go of the last result.
  void DropResult();
  // Gives back everything that no live value uses: free lists, stack, last result.
  void Trim();

#if defined(__cpp_exceptions)
  void SetInput(const InputRef& input, const TensorView& tensor, InputMode mode = InputMode::kBorrow) {
    ThrowIf(TrySetInput(input, tensor, mode));
  }
  void SetInput(const InputRef& input, const Value& value) { ThrowIf(TrySetInput(input, value)); }
  void SetInputs(std::string_view function, Span<const TensorView> tensors) {
    ThrowIf(TrySetInputs(function, tensors));
  }
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
  Value Invoke(std::string_view function, Span<const Value> inputs) {
    return Take(TryInvoke(function, inputs));
  }
  Tensor Output(std::string_view name) const { return Take(TryOutput(name)).tensor(); }
  Tensor Output(std::uint32_t leaf = 0) const { return Take(TryOutput(leaf)).tensor(); }
#endif

  struct __attribute__((visibility("hidden"))) Impl;  // vm_impl.h

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
  Result<InputHandle> Resolve(const InputRef& input) const;
  Result<OutputHandle> Resolve(const OutputRef& output) const;

  struct DeleteImpl {
    void operator()(Impl* impl) const;
  };
  VirtualMachine();
  std::unique_ptr<Impl, DeleteImpl> impl_;
};

}  // namespace rewire
