// SPDX-License-Identifier: Apache-2.0
// The interpreter's kernel calls.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "vm/interpreter.h"
#include "vm/shape.h"

namespace rewire {
namespace {

constexpr Opcode kOp = Opcode::kInvokePacked;

// TVM's rule, kept for its programs: with one output that has no elements there is nothing to compute.
bool IsSkipped(const LinkedKernel& kernel, Span<const RewireFFIAny> args, std::uint32_t outputs) {
  if (outputs != 1 || args.empty() || (kernel.import->flags & kKernelObjects) != 0) return false;
  const RewireFFIAny& last = args[args.size() - 1];
  return last.type_index == kTensorKind && (TensorOf(last)->flags & TensorObject::kEmpty) != 0;
}

bool IsWritten(const KernelImport& import, std::uint32_t position, std::uint32_t first_output) {
  return position >= first_output || std::find(import.also_written.begin(), import.also_written.end(),
                                               position) != import.also_written.end();
}

}  // namespace

bool Interpreter::CallKernelSlowly() {
  const Word index = pc_[WordOf(kOp, "kernel")];
  const LinkedKernel& kernel = kernels_[index];
  const Word outputs = pc_[WordOf(kOp, "outputs")];
  const bool objects = (kernel.import->flags & kKernelObjects) != 0;
  vm_.args.Pop(0);
  for (const Word reg : ReadsView(pc_ + WordOf(kOp, "args"))) {
    if (!AppendArgument(Reg(reg), objects)) {
      DropTemporaries();
      return false;
    }
  }
  const Span<const RewireFFIAny> args(vm_.args.data(), vm_.args.size());
  const auto count = static_cast<std::uint32_t>(args.size());
  if (outputs > count) {
    return Fail(StatusCode::kRuntimeFailed,
                "{} outputs declared, {} arguments given after ADTs were flattened", outputs, count);
  }
  bool ok = true;
  for (std::uint32_t i = 0; ok && i < count; ++i) {
    const bool written = IsWritten(*kernel.import, i, count - outputs);
    ok = (!written || CheckWritten(i)) && (kernel.alignment_mask == 0 || AlignArgument(i, kernel, written));
  }
  ok = ok && CheckInterrupts();
  if (!ok) {
    DropTemporaries();
    return false;
  }
  if (IsSkipped(kernel, args, outputs)) {
    return FinishKernel({});
  }
  vm_.current_kernel = index;
  RewireFFIAny returned{};
  const bool observed = vm_.observer != nullptr && vm_.observer->wants_kernels();
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  const auto start = observed ? now() : std::chrono::steady_clock::duration::zero();
  const bool succeeded =
      kernel.call(kernel.handle, args.data(), static_cast<std::int32_t>(count), &returned) == 0;
  if (observed) {
    const auto end = now();
    vm_.observer->OnKernel(
        {rep_.module(), vm_.frames.back().function, static_cast<std::uint32_t>(pc_ - code_), index, args,
         std::chrono::nanoseconds(start).count(), std::chrono::nanoseconds(end).count(), succeeded});
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
                "argument {} is a closure or a storage, which kernels do not take", vm_.args.size());
  }
  if (IsIntegerKind(value.type_index)) {
    if (objects) {
      arg.type_index = kRewireFFIInt;
    } else {
      TensorObject* boxed = Box(value);
      if (boxed == nullptr) return false;
      arg = MakeAny(kTensorKind, boxed);
      if (!vm_.temporaries.Push(arg)) {
        heap_.Release(boxed);
        return FailMemory(sizeof(arg));
      }
    }
  }
  return vm_.args.Push(arg) || FailMemory(sizeof(arg));
}

bool Interpreter::CheckWritten(std::uint32_t position) {
  const RewireFFIAny& arg = vm_.args[position];
  if (arg.type_index == kTensorKind && (TensorOf(arg)->flags & TensorObject::kReadOnly) != 0) {
    return Fail(StatusCode::kRuntimeFailed,
                "argument {} is written by the kernel, but the tensor given, {}, is read-only (a constant, a "
                "parameter, the caller's input, an integer or a view of one)",
                position, TensorText(TensorOf(arg)->tensor));
  }
  return true;
}

// A kernel that assumes more alignment than a tensor has gets an aligned copy; what it reads is copied in,
// and a written argument cannot be given that way.
bool Interpreter::AlignArgument(std::uint32_t position, const LinkedKernel& kernel, bool written) {
  const RewireFFIAny& arg = vm_.args[position];
  if (arg.type_index != kTensorKind) return true;
  const DLTensor& dl = TensorOf(arg)->tensor;
  if ((reinterpret_cast<std::uintptr_t>(dl.data) & kernel.alignment_mask) == 0) return true;
  const std::string needed = std::to_string(kernel.alignment_mask + 1);
  if (written || dl.device.device_type != kDLCPU) {
    return Fail(StatusCode::kRuntimeFailed,
                "argument {}, a tensor {}, is not aligned to the {} bytes that the kernel needs", position,
                TensorText(dl), needed);
  }
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  TensorObject* copy =
      NewHeapTensor(heap_, rep_.devices[kHostDevice], dl.dtype, shape, kernel.alignment_mask + 1);
  if (copy == nullptr) return FailMemory(TensorBytes(dl.dtype, shape).value_or(0));
  CopyElements(dl, copy->tensor.data);
  copy->flags |= TensorObject::kReadOnly;
  if (!vm_.temporaries.Push(MakeAny(kTensorKind, copy))) {
    heap_.Release(copy);
    return FailMemory(sizeof(RewireFFIAny));
  }
  vm_.args[position] = MakeAny(kTensorKind, copy);
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

// After a successful call: the returned value goes to its register, what lived for the call goes away.
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

// What a kernel returned becomes a register's value: tensors of ours as they are, foreign ones wrapped,
// arrays as ADTs.
bool Interpreter::TakeReturned(RewireFFIAny returned, RewireFFIAny* out) {
  switch (returned.type_index) {
    case kRewireFFIInt:
    case kRewireFFIBool:
      *out = MakeInteger(kInt64Kind, returned.v_int64);
      return true;
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
                                                  : Format("the kernel returned a value of type index {}; a "
                                                           "tensor, an integer or an array is expected",
                                                           returned.type_index));
  }
}

// The array stays the caller's to drop.
bool Interpreter::TakeReturnedArray(const RewireFFIAny& returned, RewireFFIAny* out) {
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

bool Interpreter::TakeReturnedObject(const RewireFFIAny& returned, RewireFFIAny* out) {
  Object* object = ObjectOf(returned);
  if (IsRewireObject(object)) {
    // The register's reference replaces the strong one that the kernel gave.
    if (object->local == kShared) {
      *out = returned;
      return true;
    }
    ObjectHeap::Retain(returned);
    DropStrong(object);
    *out = returned;
    return true;
  }
  if (returned.type_index != kTensorKind) {
    DropStrong(object);
    return Fail(StatusCode::kRuntimeFailed, "the kernel returned an ADT that Rewire did not make");
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
  tensor->flags = 0;
  SetContiguousDims(tensor, dl.shape, static_cast<std::uint32_t>(dl.ndim));
  tensor->tensor.data = static_cast<char*>(dl.data) + dl.byte_offset;
  tensor->tensor.byte_offset = 0;
  tensor->tensor.device = dl.device;
  tensor->tensor.dtype = dl.dtype;
  tensor->storage = storage;
  *out = MakeAny(kTensorKind, tensor);
  return true;
}

void Interpreter::DropTemporaries() {
  GrowingArray<RewireFFIAny>& temporaries = vm_.temporaries;
  for (std::uint32_t i = temporaries.size(); i-- > 0;) heap_.Release(temporaries[i]);
  temporaries.Pop(0);
  for (std::uint32_t i = vm_.workspaces.size(); i-- > 0;) {
    heap_.pool().Give(vm_.workspaces[i].block, vm_.workspaces[i].bytes);
  }
  vm_.workspaces.Pop(0);
}

}  // namespace rewire
