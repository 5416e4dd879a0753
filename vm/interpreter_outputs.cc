// SPDX-License-Identifier: Apache-2.0
// Where the interpreter makes tensors in the caller's memory, and brings the others there when the run ends.
#include <cstring>

#include "base/array.h"
#include "vm/interpreter.h"
#include "vm/outputs/memory_range.h"
#include "vm/shape.h"

namespace rewire {

// The output whose tensor the instruction at pc_ makes, when it is bound in this frame.
OutputSlot* Interpreter::SlotHere() {
  const Array<std::uint32_t>& sites = rep_.plans[vm_.frames.back().function].sites;
  if (sites.empty()) return nullptr;
  const std::uint32_t leaf = sites[static_cast<std::size_t>(pc_ - code_)];
  return leaf == FunctionPlan::kNotRewired ? nullptr : vm_.destinations[destinations_ + leaf - 1];
}

// The output whose memory takes a tensor of this size, or null when it has to be made elsewhere.
const OutputSlot* Interpreter::MemoryHere(DLDataType dtype, Span<const std::int64_t> shape, DLDevice device) {
  OutputSlot* slot = SlotHere();
  if (slot == nullptr || slot->obstacle != OutputSlot::kNoObstacle ||
      slot->device.device_type != device.device_type || slot->device.device_id != device.device_id) {
    return nullptr;
  }
  const std::uint64_t bytes = TensorBytes(dtype, shape).value_or(0);
  // What does not fit is made elsewhere; whether that is an error shows when the function returns.
  if (slot->mode == OutputSlot::kTensor && (slot->tensor.dtype() != dtype || slot->capacity != bytes))
    return nullptr;
  if (slot->mode == OutputSlot::kAllocator && (slot->data == nullptr || bytes > slot->capacity)) {
    // None: the host is asked again if this turns out to be the output, and that answer counts.
    if (!AskForMemory(slot, bytes)) return nullptr;
  }
  const std::uintptr_t mask = std::max<std::uintptr_t>(ElementBytes({dtype.code, dtype.bits, 1}), 1) - 1;
  if (bytes > slot->capacity || (reinterpret_cast<std::uintptr_t>(slot->data) & mask) != 0) return nullptr;
  // A donated input's contents are the program's own until it is written.
  if (rep_.storage_fill != StorageFill::kUndefined && !slot->donated && device.device_type == kDLCPU) {
    std::memset(slot->data, rep_.storage_fill == StorageFill::kZero ? 0 : kPoisonByte, bytes);
  }
  return slot;
}

bool Interpreter::AskForMemory(OutputSlot* slot, std::uint64_t bytes) {
  const std::uint64_t alignment = std::max<std::uint64_t>(rep_.output_alignment, 64);
  slot->data = slot->allocator.allocate(slot->allocator.context, bytes, alignment);
  slot->capacity = slot->data == nullptr ? 0 : bytes;
  return slot->data != nullptr;
}

// A new contiguous tensor for the instruction at pc_: in the caller's memory where the plan says so and it is
// bound.
TensorObject* Interpreter::NewTensor(const LinkedDevice& device, DLDataType dtype,
                                     Span<const std::int64_t> shape) {
  if (destinations_ != kNone) {
    if (const OutputSlot* slot = MemoryHere(dtype, shape, device.device); slot != nullptr) {
      return TensorOver(*slot, dtype, shape);
    }
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
  tensor->flags = 0;
  SetContiguousDims(tensor, shape.data(), static_cast<std::uint32_t>(shape.size()));
  tensor->tensor.data = slot.data;
  tensor->tensor.device = slot.device;
  tensor->tensor.dtype = dtype;
  tensor->tensor.byte_offset = 0;
  // A result may outlive the binding, and the input that it took the memory of.
  tensor->storage = slot.storage;
  if (slot.storage != nullptr) ObjectHeap::Retain(slot.storage);
  return tensor;
}

// The invoked function's destinations: its bound outputs.
bool Interpreter::BindDestinations(std::uint32_t function) {
  AccountArray<OutputSlot>& leaves = vm_.outputs[function].leaves;
  if (!vm_.destinations.Resize(leaves.size())) return FailMemory(leaves.size() * sizeof(OutputSlot*));
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    vm_.destinations[i] = leaves[i].mode == OutputSlot::kUnbound ? nullptr : &leaves[i];
    leaves[i].copied = false;
  }
  return true;
}

// The callee's destinations, from the caller's by the plan of the Invoke at pc_. kNone when none is bound.
bool Interpreter::CarryDestinations(std::uint32_t* destinations) {
  *destinations = kNone;
  const FunctionPlan& plan = rep_.plans[vm_.frames.back().function];
  if (plan.sites.empty()) return true;
  const std::uint32_t call = plan.sites[static_cast<std::size_t>(pc_ - code_)];
  if (call == FunctionPlan::kNotRewired) return true;
  const Array<std::uint32_t>& leaves = plan.calls[call - 1];
  const std::uint32_t base = vm_.destinations.size();
  bool any = false;
  if (!vm_.destinations.Resize(std::uint64_t{base} + leaves.size())) return FailMemory(leaves.size() * 8);
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    OutputSlot* slot =
        leaves[i] == FunctionPlan::kNotRewired ? nullptr : vm_.destinations[destinations_ + leaves[i] - 1];
    vm_.destinations[base + i] = slot;
    any = any || slot != nullptr;
  }
  if (any) {
    *destinations = base;
  } else {
    vm_.destinations.Pop(base);
  }
  return true;
}

// The value of each leaf of the invoked function's result, in vm_.leaf_values. False when the value has
// another structure than its type says (a kernel may return anything).
bool Interpreter::FindLeaves(const RewireFFIAny& value, const Function& function) {
  const Type& type = function.result;
  GrowingArray<RewireFFIAny>& nodes = vm_.leaf_values;
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
// All are checked before any is copied, and what a copy would overwrite is put aside first.
bool Interpreter::FinishOutputs(const RewireFFIAny& value) {
  const std::uint32_t index = vm_.frames.back().function;
  const Function& function = rep_.module().functions[index];
  OutputSlots& slots = vm_.outputs[index];
  if (!FindLeaves(value, function)) return false;
  const Array<std::uint32_t>& nodes = rep_.functions[index].leaf_nodes;
  bool any_copy = false;
  for (std::uint32_t leaf = 0; leaf < nodes.size(); ++leaf) {
    OutputSlot& slot = slots.leaves[leaf];
    if (slot.mode == OutputSlot::kUnbound) continue;
    if (!CheckLeaf(function, leaf, &slot, &vm_.leaf_values[nodes[leaf]])) return false;
    any_copy = any_copy || slot.copied;
  }
  if (!any_copy) return true;
  for (std::uint32_t leaf = 0; leaf < nodes.size(); ++leaf) {
    if (!slots.leaves[leaf].copied) continue;
    if (!PutAside(slots, &vm_.leaf_values[nodes[leaf]])) return false;
  }
  for (std::uint32_t leaf = 0; leaf < nodes.size(); ++leaf) {
    if (slots.leaves[leaf].copied && !CopyLeaf(slots.leaves[leaf], vm_.leaf_values[nodes[leaf]]))
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
    if (!vm_.temporaries.Push(*value)) {
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
    const bool same = slot->tensor.dtype() == dl.dtype && slot->tensor.shape().size() == shape.size() &&
                      std::equal(shape.begin(), shape.end(), slot->tensor.shape().begin());
    if (!same) {
      return Fail(StatusCode::kRuntimeFailed, "output {}: the bound tensor is {}, the value is {}", name,
                  TensorText(slot->tensor.dl()), TensorText(dl));
    }
  } else if (slot->mode == OutputSlot::kAllocator && dl.data != slot->data) {
    if (!AskForMemory(slot, bytes)) {
      return Fail(StatusCode::kOutOfMemory, "output {}: its allocator gave no {} bytes", name, bytes);
    }
  } else if (bytes > slot->capacity) {
    return Fail(StatusCode::kRuntimeFailed, "output {}: {} takes {} bytes, the bound memory has {}", name,
                TensorText(dl), bytes, slot->capacity);
  }
  slot->copied = bytes != 0 && (dl.data != slot->data || slot->obstacle == OutputSlot::kStrided);
  if (!slot->copied) return true;
  if (slot->obstacle == OutputSlot::kNoObstacle) slot->obstacle = OutputSlot::kElsewhere;
  if (!vm_.require_zero_copy) return true;
  return Fail(StatusCode::kRuntimeFailed, "output {} would be copied, and zero copy is required: {}", name,
              OutputReason(vm_, vm_.frames.back().function, leaf));
}

// A value that lies where some output is about to be copied to is moved out of the way.
bool Interpreter::PutAside(const OutputSlots& slots, RewireFFIAny* value) {
  const DLTensor& dl = TensorOf(*value)->tensor;
  if (dl.device.device_type != kDLCPU) return true;
  const MemoryRange range = RangeOf(dl);
  bool overlaps = false;
  for (const OutputSlot& slot : slots.leaves) {
    if (slot.mode == OutputSlot::kUnbound || !slot.copied) continue;
    const MemoryRange to =
        slot.mode == OutputSlot::kTensor ? RangeOf(slot.tensor.dl()) : RangeOf(slot.data, slot.capacity);
    overlaps = overlaps || to.Overlaps(range);
  }
  if (!overlaps) return true;
  TensorObject* copy = NewHeapTensor(heap_, rep_.devices[kHostDevice], dl.dtype,
                                     {dl.shape, static_cast<std::size_t>(dl.ndim)});
  if (copy == nullptr) return FailMemory(range.end - range.begin);
  CopyElements(dl, copy->tensor.data);
  *value = MakeAny(kTensorKind, copy);
  if (vm_.temporaries.Push(*value)) return true;
  heap_.Release(copy);
  return FailMemory(sizeof(*value));
}

bool Interpreter::CopyLeaf(const OutputSlot& slot, const RewireFFIAny& value) {
  const DLTensor& from = TensorOf(value)->tensor;
  const bool strided = slot.mode == OutputSlot::kTensor && !slot.tensor.IsContiguous();
  const char* data = static_cast<const char*>(from.data) + from.byte_offset;
  if (from.device.device_type == kDLCPU && slot.device.device_type == kDLCPU) {
    if (strided) {
      CopyElementsOut(data, slot.tensor.dl());
    } else {
      CopyElements(from, slot.data);
    }
    return true;
  }
  if (strided) return Fail(StatusCode::kRuntimeFailed, "strided memory on a device cannot be an output");
  const std::uint64_t bytes =
      TensorBytes(from.dtype, {from.shape, static_cast<std::size_t>(from.ndim)}).value_or(0);
  return CopyBetween(data, from.device, slot.data, slot.device, bytes);
}

}  // namespace rewire
