// SPDX-License-Identifier: Apache-2.0
//
// Decides where the interpreter makes tensors in the caller's memory, and copies the others there when the
// run ends.
#include <algorithm>
#include <cstring>

#include "rewire/base/array.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

// The output whose tensor the instruction at pc_ makes, when it is bound in this frame.
OutputSlot* Interpreter::SlotHere() {
  if (plan_ == nullptr) return nullptr;
  const std::uint32_t leaf = SiteAt(pc_);
  return leaf == FunctionPlan::kNotRewired ? nullptr : vm_.run.destinations[destinations_ + leaf - 1];
}

// Finds the output whose memory takes a tensor of this size. Null if the tensor must be made elsewhere.
// Returns false after a failure.
bool Interpreter::MemoryHere(DLDataType dtype, Span<const std::int64_t> shape, DLDevice device,
                             const OutputSlot** memory) {
  *memory = nullptr;
  OutputSlot* slot = SlotHere();
  if (slot == nullptr || slot->obstacles != 0 || !IsSameDevice(slot->device, device)) return true;
  const std::uint64_t bytes = TensorBytes(dtype, shape).value_or(0);
  // A tensor that does not fit is made elsewhere. Whether that is an error is decided when the function
  // returns.
  if (slot->mode == OutputSlot::kTensor && (slot->form.dtype != dtype || slot->capacity != bytes))
    return true;
  if (slot->mode == OutputSlot::kAllocator && (slot->data == nullptr || bytes > slot->capacity)) {
    if (!AskForMemory(slot, bytes)) return false;
    // None: the host is asked again if this turns out to be the output, and that answer counts.
    if (slot->data == nullptr || slot->obstacles != 0) return true;
  }
  const std::uintptr_t mask = std::max<std::uintptr_t>(ElementBytes({dtype.code, dtype.bits, 1}), 1) - 1;
  if (bytes > slot->capacity || (reinterpret_cast<std::uintptr_t>(slot->data) & mask) != 0) return true;
  *memory = slot;
  return true;
}

// FillOutput gives an output's memory what new memory holds before it is written (StorageFill). A donated
// input's contents are the program's own until it is written. Returns false after a failure.
bool Interpreter::FillOutput(const OutputSlot& slot, std::uint64_t bytes) {
  if (rep_.storage_fill == StorageFill::kUndefined || slot.donated || !IsHostDevice(slot.device)) return true;
  if (!ReadyToWrite(RangeOf(slot.data, bytes), WaitCause::kReuse)) return false;
  std::memset(slot.data, rep_.storage_fill == StorageFill::kZero ? 0 : kPoisonByte, bytes);
  return true;
}

// Asks an output's allocator. slot->data is null if it gave nothing. Returns false after a failure: its
// answer cannot be used, or it threw.
bool Interpreter::AskForMemory(OutputSlot* slot, std::uint64_t bytes) {
  if (vm_.streams.recording()) return RefuseRecording("an output has an allocator");
  const std::uint64_t alignment = std::max<std::uint64_t>(rep_.output_alignment, 64);
  void* data = nullptr;
  const bool called = CallHost("the output's allocator", [&] {
    data = slot->allocator.allocate(slot->allocator.context, bytes, alignment);
  });
  if (!called) return false;
  const std::uint32_t function = vm_.run.frames[0].function;
  const auto leaf = static_cast<std::uint32_t>(slot - vm_.outputs.Of(function).leaves.data());
  const Status admitted = vm_.outputs.AdmitAnswer(function, leaf, data, data == nullptr ? 0 : bytes);
  return admitted || Fail(admitted.code(), admitted.error().message());
}

// A new contiguous tensor for the instruction at pc_: in the caller's memory where the plan says so and it is
// bound.
TensorObject* Interpreter::NewTensor(const LinkedDevice& device, DLDataType dtype,
                                     Span<const std::int64_t> shape) {
  if (destinations_ != kNone) {
    const OutputSlot* slot = nullptr;
    if (!MemoryHere(dtype, shape, device.tensor_device(), &slot)) return nullptr;
    if (slot != nullptr) return TensorOver(*slot, dtype, shape);
  }
  TensorObject* tensor = NewHeapTensor(heap_, device, dtype, shape);
  if (tensor == nullptr) FailMemory(TensorBytes(dtype, shape).value_or(0));
  return tensor;
}

// A tensor over an output's memory; null after a failure.
TensorObject* Interpreter::TensorOver(const OutputSlot& slot, DLDataType dtype,
                                      Span<const std::int64_t> shape) {
  TensorObject* tensor = heap_.NewTensor(static_cast<std::uint32_t>(shape.size()));
  if (tensor == nullptr) {
    FailMemory(sizeof(TensorObject));
    return nullptr;
  }
  tensor->flags = vm_.detaches_outputs ? TensorObject::kForCall : 0u;
  SetContiguousDims(tensor, dtype, shape.data(), static_cast<std::uint32_t>(shape.size()));
  tensor->tensor.data = slot.data;
  tensor->tensor.device = slot.device;
  tensor->tensor.byte_offset = 0;
  // A result may outlive the binding, and the input that it took the memory of.
  tensor->storage = slot.storage;
  if (slot.storage != nullptr) ObjectHeap::Retain(slot.storage);
  return tensor;
}

// The invoked function's destinations: its bound outputs.
bool Interpreter::BindDestinations(std::uint32_t function) {
  AccountArray<OutputSlot>& leaves = vm_.outputs.Of(function).leaves;
  if (!vm_.run.destinations.Resize(leaves.size())) return FailMemory(leaves.size() * sizeof(OutputSlot*));
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    vm_.run.destinations[i] = leaves[i].mode == OutputSlot::kUnbound ? nullptr : &leaves[i];
    leaves[i].copied = leaves[i].staged = false;
  }
  return true;
}

// The callee's destinations: the plan of the Invoke at pc_ maps them from the caller's. kNone if no output is
// bound.
bool Interpreter::CarryDestinations(std::uint32_t* destinations) {
  *destinations = kNone;
  if (plan_ == nullptr) return true;
  const std::uint32_t call = SiteAt(pc_);
  if (call == FunctionPlan::kNotRewired) return true;
  const Array<std::uint32_t>& leaves = plan_->calls[call - 1];
  const std::uint32_t base = vm_.run.destinations.size();
  bool any = false;
  if (!vm_.run.destinations.Resize(std::uint64_t{base} + leaves.size())) return FailMemory(leaves.size() * 8);
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    OutputSlot* slot = leaves[i] == FunctionPlan::kNotRewired
                           ? nullptr
                           : vm_.run.destinations[destinations_ + leaves[i] - 1];
    vm_.run.destinations[base + i] = slot;
    any = any || slot != nullptr;
  }
  if (any) {
    *destinations = base;
  } else {
    vm_.run.destinations.Pop(base);
  }
  return true;
}

// The value of each leaf of the invoked function's result, in vm_.run.leaf_values. False when the value has
// another structure than its type says (a kernel may return anything).
bool Interpreter::FindLeaves(const RewireFFIAny& value, const Function& function) {
  const Type& type = function.result;
  GrowingArray<RewireFFIAny>& nodes = vm_.run.leaf_values;
  if (!nodes.Resize(type.nodes.size())) return FailMemory(type.nodes.size() * sizeof(RewireFFIAny));
  nodes[0] = value;
  for (std::uint32_t node = 0; node < type.nodes.size(); ++node) {
    if (type.nodes[node].kind != TypeKind::kAdt) continue;
    const bool fits =
        nodes[node].type_index == kAdtKind && TupleOf(nodes[node])->count == type.nodes[node].field_count;
    if (!fits) {
      return Fail(StatusCode::kRuntimeFailed,
                  "the result has not the structure that the signature of {} says", function.name);
    }
    std::uint32_t child = node + 1;
    for (std::uint32_t i = 0; i < type.nodes[node].field_count; ++i, child = SubtreeEnd(type, child)) {
      nodes[child] = TupleOf(nodes[node])->fields()[i];
    }
  }
  return true;
}

// At the last Ret: checks every bound leaf against its binding, and copies those that were made elsewhere.
// All checks come before all copies. Values that a copy would overwrite are saved first.
bool Interpreter::FinishOutputs(const RewireFFIAny& value) {
  const std::uint32_t index = vm_.run.frames.back().function;
  const Function& function = rep_.module().functions[index];
  OutputSlots& slots = vm_.outputs.Of(index);
  if (!FindLeaves(value, function)) return false;
  const Array<std::uint32_t>& nodes = rep_.functions[index].leaf_nodes;
  bool any_copy = false;
  for (std::uint32_t leaf = 0; leaf < nodes.size(); ++leaf) {
    OutputSlot& slot = slots.leaves[leaf];
    if (slot.mode == OutputSlot::kUnbound) continue;
    if (!CheckLeaf(function, leaf, &slot, &vm_.run.leaf_values[nodes[leaf]])) return false;
    any_copy = any_copy || slot.copied;
  }
  if (!any_copy) return true;
  for (std::uint32_t leaf = 0; leaf < nodes.size(); ++leaf) {
    if (!slots.leaves[leaf].copied) continue;
    if (!PutAside(slots, &vm_.run.leaf_values[nodes[leaf]])) return false;
  }
  for (std::uint32_t leaf = 0; leaf < nodes.size(); ++leaf) {
    if (slots.leaves[leaf].copied && !CopyLeaf(slots.leaves[leaf], vm_.run.leaf_values[nodes[leaf]]))
      return false;
  }
  DropTemporaries();
  return true;
}

bool Interpreter::CheckLeaf(const Function& function, std::uint32_t leaf, OutputSlot* slot,
                            RewireFFIAny* value) {
  const std::string& name = function.output_names[leaf];
  slot->copied = false;
  if (IsIntegerKind(value->type_index)) {
    TensorObject* boxed = Box(*value);
    if (boxed == nullptr) return false;
    *value = MakeAny(kTensorKind, boxed);
    if (!vm_.run.temporaries.Push(*value)) {
      heap_.Release(boxed);
      return FailMemory(sizeof(*value));
    }
  }
  if (value->type_index != kTensorKind) {
    return Fail(StatusCode::kRuntimeFailed, "output {} is bound to memory, but its value is no tensor", name);
  }
  const DLTensor& dl = TensorOf(*value)->tensor;
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  const std::uint64_t bytes = TensorBytes(dl.dtype, shape).value_or(0);
  slot->rank = dl.ndim;
  slot->dtype = dl.dtype;
  std::copy(shape.begin(), shape.end(), slot->shape);
  if (slot->mode == OutputSlot::kTensor) {
    const DLTensor& form = slot->form;
    const bool same =
        form.dtype == dl.dtype && form.ndim == dl.ndim && std::equal(shape.begin(), shape.end(), form.shape);
    if (!same) {
      return Fail(StatusCode::kRuntimeFailed, "output {}: the bound tensor is {}, the value is {}", name,
                  TensorText(form), TensorText(dl));
    }
  } else if (slot->mode == OutputSlot::kAllocator && dl.data != slot->data) {
    if (!AskForMemory(slot, bytes)) return false;
    if (slot->data == nullptr && bytes > 0) {
      return Fail(StatusCode::kOutOfMemory, "output {}: its allocator gave no {} bytes", name, bytes);
    }
  } else if (bytes > slot->capacity) {
    return Fail(StatusCode::kRuntimeFailed, "output {}: {} takes {} bytes, the bound memory has {}", name,
                TensorText(dl), bytes, slot->capacity);
  }
  slot->copied = bytes != 0 && (dl.data != slot->data || slot->strided);
  if (!slot->copied) return true;
  if (slot->obstacles == 0) slot->obstacles = OutputSlot::kElsewhere;
  if (!vm_.outputs.require_zero_copy) return true;
  return Fail(StatusCode::kRuntimeFailed, "output {} would be copied, and zero copy is required: {}", name,
              vm_.outputs.ReasonOf(vm_.run.frames.back().function, leaf));
}

// A value that lies where some output is about to be copied to is moved out of the way.
bool Interpreter::PutAside(const OutputSlots& slots, RewireFFIAny* value) {
  const DLTensor& dl = TensorOf(*value)->tensor;
  const MemoryRange range = RangeOf(dl);
  bool overlaps = false;
  for (const OutputSlot& slot : slots.leaves) {
    if (slot.mode == OutputSlot::kUnbound || !slot.copied || !IsSameDevice(slot.device, dl.device)) continue;
    overlaps = overlaps || slot.extent().Overlaps(range);
  }
  if (!overlaps) return true;
  const bool on_host = IsHostDevice(dl.device);
  DeviceStreams::Stream* stream = nullptr;  // a device that has one is in the table
  if (!FindStream(dl.device, &stream)) return false;
  const LinkedDevice& device = on_host ? rep_.devices[kHostDevice] : *vm_.streams.Entry(dl.device);
  TensorObject* copy = NewHeapTensor(heap_, device, dl.dtype, {dl.shape, static_cast<std::size_t>(dl.ndim)});
  if (copy == nullptr) return FailMemory(range.end - range.begin);
  const CopyEnd from{static_cast<char*>(dl.data) + dl.byte_offset, dl.device, TensorOf(*value)};
  const CopyEnd to{copy->tensor.data, dl.device, copy};
  const bool ready = on_host ? WaitToUse(DeviceWork::Use::kReads, range, WaitCause::kEnd)
                             : CopyBetween(from, to, range.end - range.begin);
  if (!ready) {
    heap_.Release(copy);
    return false;
  }
  if (on_host) CopyElements(dl, copy->tensor.data);
  *value = MakeAny(kTensorKind, copy);
  if (vm_.run.temporaries.Push(*value)) return true;
  heap_.Release(copy);
  return FailMemory(sizeof(*value));
}

bool Interpreter::CopyLeaf(const OutputSlot& slot, const RewireFFIAny& value) {
  const DLTensor& from = TensorOf(value)->tensor;
  const char* data = static_cast<const char*>(from.data) + from.byte_offset;
  if (IsHostDevice(from.device) && IsHostDevice(slot.device)) {
    if (!ReadyToWrite(slot.extent(), WaitCause::kEnd) ||
        !WaitToUse(DeviceWork::Use::kReads, RangeOf(from), WaitCause::kEnd)) {
      return false;
    }
    if (slot.strided) {
      CopyElementsOut(data, slot.form);
    } else {
      CopyElements(from, slot.data);
    }
    return true;
  }
  if (slot.strided) return Fail(StatusCode::kRuntimeFailed, "strided memory on a device cannot be an output");
  const std::uint64_t bytes =
      TensorBytes(from.dtype, {from.shape, static_cast<std::size_t>(from.ndim)}).value_or(0);
  // The value stays until the call returns, as the output's memory does.
  return CopyBetween({const_cast<char*>(data), from.device, TensorOf(value)},
                     {slot.data, slot.device, nullptr}, bytes);
}

}  // namespace rewire
