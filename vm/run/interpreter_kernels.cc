// SPDX-License-Identifier: Apache-2.0
// The interpreter's kernel calls.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

constexpr Opcode kOp = Opcode::kInvokePacked;

// TVM's rule, kept for its programs: with one output that has no elements, and nothing else that the kernel
// writes, there is nothing to compute. An elementwise kernel of the host is called all the same: it checks
// that shapes broadcast, and those that do not fail however many elements there are.
bool IsSkipped(const LinkedKernel& kernel, Span<const RewireFFIAny> args, std::uint32_t outputs) {
  const bool writes_more = outputs != 1 || !kernel.import->also_written.empty();
  if (writes_more || args.empty() || (kernel.import->flags & kKernelObjects) != 0) return false;
  const RewireFFIAny& last = args[args.size() - 1];
  if (last.type_index != kTensorKind || (TensorOf(last)->flags & TensorObject::kEmpty) == 0) return false;
  const bool is_elementwise =
      kernel.calls.known() && (kernel.calls.row().traits & REWIRE_KERNEL_ELEMENTWISE) != 0;
  return !is_elementwise || !IsHostDevice(TensorOf(last)->tensor.device);
}

std::uintptr_t BeginOf(const TensorObject& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.tensor.data) + tensor.tensor.byte_offset;
}

bool ShareMemory(const TensorObject& a, const TensorObject& b) {
  return a.bytes != 0 && b.bytes != 0 && IsSameDevice(a.tensor.device, b.tensor.device) &&
         (BeginOf(a) - BeginOf(b) < b.bytes || BeginOf(b) - BeginOf(a) < a.bytes);
}

// LiesWell is for tensors that share memory and may: whether they do so as the written argument's flags say.
bool LiesWell(const TensorObject& written, const TensorObject& read, std::uint32_t flags) {
  const auto within = [](const TensorObject& part, const TensorObject& whole) {
    const std::uintptr_t distance = BeginOf(part) - BeginOf(whole);
    return distance <= whole.bytes && part.bytes <= whole.bytes - distance;
  };
  if ((flags & REWIRE_ARGUMENT_AROUND) != 0) return within(read, written);
  if ((flags & REWIRE_ARGUMENT_WITHIN) != 0) return within(written, read);
  return BeginOf(written) == BeginOf(read) && written.bytes == read.bytes;
}

}  // namespace

bool IsWritten(const KernelImport& import, std::uint32_t position, std::uint32_t first_output) {
  return position >= first_output ||
         std::binary_search(import.also_written.begin(), import.also_written.end(), position);
}

bool Interpreter::CallKernelSlowPath(const Word* pc) {
  pc_ = pc;
  const Word index = pc_[WordOf(kOp, "kernel")];
  const LinkedKernel& kernel = kernels_[index];
  const Word outputs = pc_[WordOf(kOp, "outputs")];
  const bool objects = (kernel.import->flags & kKernelObjects) != 0;
  vm_.run.args.Clear();
  for (const Word reg : ReadsView(pc_ + WordOf(kOp, "args"))) {
    if (!AppendArgument(Reg(reg), objects)) {
      DropTemporaries();
      return false;
    }
  }
  const Span<const RewireFFIAny> args(vm_.run.args.data(), vm_.run.args.size());
  const auto count = static_cast<std::uint32_t>(args.size());
  if (outputs > count) {
    return Fail(StatusCode::kRuntimeFailed,
                "{} outputs declared, {} arguments given after ADTs were flattened", outputs, count);
  }
  // If the registers are the arguments, the call was checked when the program was linked
  // (CheckKernelRows).
  const bool as_linked = count == pc_[WordOf(kOp, "args")] && (objects || kernel.plain);
  bool ok = !kernel.calls.known() || ((as_linked || CheckCall(kernel, count, outputs)) &&
                                      (outputs == 0 || CheckOverlaps(kernel, count, outputs)));
  ok = ok && CheckBeforeCall(count, count - outputs);
  for (std::uint32_t i = 0; ok && i < count; ++i) {
    const bool written = IsWritten(*kernel.import, i, count - outputs);
    ok = (!written || CheckWritten(i)) && (kernel.alignment_mask == 0 || AlignArgument(i, kernel, written));
  }
  if (!ok) {
    DropTemporaries();
    return false;
  }
  if (IsSkipped(kernel, args, outputs)) {
    return FinishKernel({});
  }
  vm_.current_call = pc_;
  RewireFFIAny returned{};
  const bool observed = wants_kernels_;
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  const auto start = observed ? now() : std::chrono::steady_clock::duration::zero();
  const bool succeeded = kernel.function.call(kernel.function.handle, args.data(),
                                              static_cast<std::int32_t>(count), &returned) == 0;
  if (observed) {
    const auto end = now();
    const bool told =
        ObserveKernel({rep_.module(), vm_.run.frames.back().function, static_cast<std::uint32_t>(pc_ - code_),
                       index, args, std::chrono::nanoseconds(start).count(),
                       std::chrono::nanoseconds(end).count(), succeeded, kernel.function});
    // The kernel's own failure is told rather than the observer's.
    if (!told && succeeded) {
      if (IsObjectKind(returned.type_index)) DropStrong(ObjectOf(returned));
      return false;
    }
  }
  return succeeded ? FinishKernel(returned) : FailKernel(index);
}

// ADTs are flattened by one level; integers become tensors, or plain integers for a kernel that takes
// objects.
bool Interpreter::AppendArgument(const RewireFFIAny& value, bool objects) {
  RewireFFIAny arg = value;
  if (!objects && value.type_index == kAdtKind) {
    const TupleObject* tuple = TupleOf(value);
    for (std::uint32_t i = 0; i < tuple->count; ++i) {
      if (tuple->fields()[i].type_index == kAdtKind) {
        return Fail(StatusCode::kRuntimeFailed,
                    "field {} of an ADT argument is an ADT itself; only one level is flattened", i);
      }
      if (!AppendArgument(tuple->fields()[i], objects)) return false;
    }
    return true;
  }
  if (!objects && (value.type_index == kClosureKind || value.type_index == kStorageKind)) {
    return Fail(StatusCode::kRuntimeFailed,
                "argument {} is a closure or a storage, which kernels do not take", vm_.run.args.size());
  }
  if (IsIntegerKind(value.type_index)) {
    if (objects) {
      arg.type_index = kRewireFFIInt;
    } else {
      TensorObject* boxed = Box(value);
      if (boxed == nullptr) return false;
      arg = MakeAny(kTensorKind, boxed);
      if (!vm_.run.temporaries.Push(arg)) {
        heap_.Release(boxed);
        return FailMemory(sizeof(arg));
      }
    }
  }
  return vm_.run.args.Push(arg) || FailMemory(sizeof(arg));
}

bool Interpreter::CheckWritten(std::uint32_t position) {
  const RewireFFIAny& arg = vm_.run.args[position];
  if (arg.type_index == kTensorKind && (TensorOf(arg)->flags & TensorObject::kReadOnly) != 0) {
    return Fail(StatusCode::kRuntimeFailed,
                "argument {} is written by the kernel, but the tensor given, {}, is read-only (a constant, a "
                "parameter, the caller's input, an integer or a view of one)",
                position, TensorText(TensorOf(arg)->tensor));
  }
  return true;
}

bool Interpreter::CheckCall(const LinkedKernel& kernel, Word count, Word outputs) {
  const std::optional<KernelCalls::Range> expected = kernel.calls.Outputs(count);
  if (expected && expected->Has(outputs)) return true;
  return Fail(StatusCode::kRuntimeFailed,
              "{} arguments with {} outputs given after ADTs were flattened; kernel '{}' takes ({})", count,
              outputs, kernel.import->name, kernel.calls.Text());
}

// Written arguments that share memory, with what is read or with each other.
bool Interpreter::CheckOverlaps(const LinkedKernel& kernel, Word count, Word outputs) {
  const RewireFFIAny* const args = vm_.run.args.data();
  for (Word i = count - outputs; i < count; ++i) {
    if (args[i].type_index != kTensorKind) continue;
    const TensorObject& out = *TensorOf(args[i]);
    for (Word k = 0; k < i; ++k) {
      if (args[k].type_index != kTensorKind) continue;
      const TensorObject& other = *TensorOf(args[k]);
      if (!ShareMemory(out, other)) continue;
      const RewireKernelArgument& written = kernel.calls.At(i, count, outputs);
      const Word position = kernel.calls.IndexOf(k, count, outputs);
      if (k < count - outputs && (written.over >> position & 1) != 0 && LiesWell(out, other, written.flags)) {
        continue;
      }
      const RewireKernelArgument& shared = kernel.calls.row().arguments[position];
      return Fail(
          StatusCode::kRuntimeFailed,
          "argument {} ({}) is written and shares memory with argument {} ({}) in a way that kernel '{}' "
          "does not allow: it takes ({})",
          i, std::string_view(written.name, written.name_bytes), k,
          std::string_view(shared.name, shared.name_bytes), kernel.import->name, kernel.calls.Text());
    }
  }
  return true;
}

// If a kernel needs more alignment than a tensor has, it gets an aligned copy. This works only for arguments
// that it reads; a written argument cannot be copied.
bool Interpreter::AlignArgument(std::uint32_t position, const LinkedKernel& kernel, bool written) {
  const RewireFFIAny& arg = vm_.run.args[position];
  if (arg.type_index != kTensorKind) return true;
  const DLTensor& dl = TensorOf(arg)->tensor;
  if ((reinterpret_cast<std::uintptr_t>(dl.data) & kernel.alignment_mask) == 0) return true;
  if (written || !IsHostDevice(dl.device)) {
    return Fail(StatusCode::kRuntimeFailed,
                "argument {}, a tensor {}, is not aligned to the {} bytes that the kernel needs", position,
                TensorText(dl), kernel.alignment_mask + 1);
  }
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  TensorObject* copy =
      NewHeapTensor(heap_, rep_.devices[kHostDevice], dl.dtype, shape, kernel.alignment_mask + 1);
  if (copy == nullptr) return FailMemory(TensorBytes(dl.dtype, shape).value_or(0));
  CopyElements(dl, copy->tensor.data);
  copy->flags |= TensorObject::kReadOnly;
  if (!vm_.run.temporaries.Push(MakeAny(kTensorKind, copy))) {
    heap_.Release(copy);
    return FailMemory(sizeof(RewireFFIAny));
  }
  vm_.run.args[position] = MakeAny(kTensorKind, copy);
  return true;
}

bool Interpreter::FailKernel(Word index) {
  DropTemporaries();
  const PackedFunction& function = kernels_[index].function;
  const KernelError error =
      function.take_error != nullptr ? function.take_error(function.error_context) : TakeKernelError();
  std::string what = error.kind.empty() ? error.message : Format("{}: {}", error.kind, error.message);
  // A kernel that stopped because it asked whether to go on: the reason is the host's.
  if (!CheckInterrupts()) {
    if (!what.empty()) status_.error().AddContext(what);
    return false;
  }
  if (error.message.empty()) what += "the kernel failed and set no error message";
  return Fail(StatusCode::kKernelFailed, what);
}

// After a successful call: stores the returned value in its register and releases what lived during the call.
bool Interpreter::FinishKernel(const RewireFFIAny& returned) {
  const Word dst = pc_[WordOf(kOp, "dst")];
  RewireFFIAny value{};
  bool ok = true;
  if (dst == kNone) {
    if (IsObjectKind(returned.type_index)) DropStrong(ObjectOf(returned));
  } else {
    ok = TakeReturned(returned, &value);
  }
  DropTemporaries();
  if (!ok) return false;
  if (dst != kNone) Put(dst, value);
  return true;
}

// Converts a kernel's return value to a register's value: Rewire's tensors unchanged, foreign ones wrapped,
// arrays as ADTs, a float as an f64 scalar.
bool Interpreter::TakeReturned(RewireFFIAny returned, RewireFFIAny* out) {
  switch (returned.type_index) {
    case kRewireFFIInt:
    case kRewireFFIBool:
      *out = MakeInteger(kInt64Kind, returned.v_int64);
      return true;
    case kRewireFFIFloat: {
      TensorObject* scalar = NewHeapTensor(heap_, rep_.devices[kHostDevice], kFloat64, {}, alignof(double));
      if (scalar == nullptr) return FailMemory(sizeof(double));
      std::memcpy(scalar->tensor.data, &returned.v_float64, sizeof(double));
      *out = MakeAny(kTensorKind, scalar);
      return true;
    }
    case kTensorKind:
    case kAdtKind:
      return TakeReturnedObject(returned, out);
    case kRewireFFIArray: {
      const bool taken = TakeReturnedArray(returned, out);
      DropStrong(ObjectOf(returned));
      return taken;
    }
    default:
      if (IsObjectKind(returned.type_index)) DropStrong(ObjectOf(returned));
      return Fail(StatusCode::kRuntimeFailed, returned.type_index == kRewireFFINone
                                                  ? "the kernel returned nothing, a value is expected"
                                                  : Format("the kernel returned a value of type {}; a "
                                                           "tensor, a number or an array is expected",
                                                           kernel::TypeIndexName(returned.type_index)));
  }
}

// The array stays the caller's to drop.
[[gnu::cold]] bool Interpreter::TakeReturnedArray(const RewireFFIAny& returned, RewireFFIAny* out) {
  // Array objects: header, then the sequence cell.
  const auto* cell = reinterpret_cast<const RewireFFISeqCell*>(ObjectOf(returned) + 1);
  const auto* items = static_cast<const RewireFFIAny*>(cell->data);
  const auto count = static_cast<std::uint32_t>(cell->size);
  TupleObject* tuple = heap_.NewTuple(kAdtKind, 0, count);
  if (tuple == nullptr) return FailMemory(TupleObject::Bytes(count));
  std::memset(tuple->fields(), 0, count * sizeof(RewireFFIAny));
  for (std::uint32_t i = 0; i < count; ++i) {
    if (items[i].type_index == kRewireFFIArray) {
      heap_.Release(tuple);
      return Fail(StatusCode::kRuntimeFailed,
                  "the kernel returned an array inside an array; only one level is taken");
    }
    if (IsObjectKind(items[i].type_index)) ObjectOf(items[i])->AddStrong();  // TakeReturned takes one over
    if (!TakeReturned(items[i], &tuple->fields()[i])) {
      heap_.Release(tuple);
      return false;
    }
  }
  *out = MakeAny(kAdtKind, tuple);
  return true;
}

[[gnu::cold]] bool Interpreter::TakeReturnedObject(const RewireFFIAny& returned, RewireFFIAny* out) {
  Object* object = ObjectOf(returned);
  const bool rewires = IsRewireObject(object);
  // A constant may be another Program's, which this VM does not keep.
  if (rewires && heap_.MayHold(object) && object->local != kUncounted) {
    *out = returned;
    // The register's reference replaces the strong one that the kernel gave.
    if (object->local == kShared) return true;
    ObjectHeap::Retain(returned);
    DropStrong(object);
    return true;
  }
  if (returned.type_index != kTensorKind) {
    DropStrong(object);
    return Fail(StatusCode::kRuntimeFailed, rewires ? "the kernel returned an ADT that belongs to another VM"
                                                    : "the kernel returned an ADT that Rewire did not make");
  }
  const DLTensor& dl = reinterpret_cast<RewireFFITensorObject*>(object)->tensor;
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  if (dl.ndim < 0 || dl.ndim > kMaxRank || !TensorBytes(dl.dtype, shape) || !IsContiguous(dl)) {
    DropStrong(object);
    return Fail(StatusCode::kRuntimeFailed,
                "the kernel returned a tensor that is strided or has a wrong shape");
  }
  StorageObject* storage = NewSharedStorage();
  TensorObject* tensor = storage == nullptr ? nullptr : heap_.NewTensor(static_cast<std::uint32_t>(dl.ndim));
  if (tensor == nullptr) {
    DropStrong(object);
    if (storage != nullptr) DropStrong(storage);
    return FailMemory(sizeof(TensorObject));
  }
  storage->data = dl.data;
  storage->device = dl.device;
  storage->release = [](void* context) { DropStrong(static_cast<Object*>(context)); };
  storage->release_context = object;
  tensor->flags = rewires ? TensorObject::kReadOnly | TensorObject::kImmutable : 0u;
  SetContiguousDims(tensor, dl.dtype, dl.shape, static_cast<std::uint32_t>(dl.ndim));
  tensor->tensor.data = static_cast<char*>(dl.data) + dl.byte_offset;
  tensor->tensor.byte_offset = 0;
  tensor->tensor.device = dl.device;
  tensor->storage = storage;
  *out = MakeAny(kTensorKind, tensor);
  return true;
}

void Interpreter::DropTemporaries() {
  GrowingArray<RewireFFIAny>& temporaries = vm_.run.temporaries;
  for (std::uint32_t i = temporaries.size(); i-- > 0;) heap_.Release(temporaries[i]);
  temporaries.Clear();
  for (std::uint32_t i = vm_.run.workspaces.size(); i-- > 0;) {
    heap_.pool().Give(vm_.run.workspaces[i].block, vm_.run.workspaces[i].bytes);
  }
  vm_.run.workspaces.Clear();
}

}  // namespace rewire
