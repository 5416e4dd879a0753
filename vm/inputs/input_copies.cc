// SPDX-License-Identifier: Apache-2.0
//
// Copies of inputs that a program cannot use as they lie: strided or misaligned ones, those on another
// device, and those that the host wants copied.
#include "rewire/base/array.h"
#include "rewire/vm/inputs/bound_inputs.h"
#include "rewire/vm/value/shape.h"
#include "rewire/vm/value/type_check.h"

namespace rewire {

// A read-only copy of a host tensor with one reference of the VM's; null when there is no memory. Not in an
// arena: it stays between runs.
TensorObject* BoundInputs::CopyOf(const DLTensor& dl) {
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  TensorObject* copy = !memory_.apart() ? NewHeapTensor(heap_, rep_.devices[kHostDevice], dl.dtype, shape)
                                        : NewSharedHostTensor(dl.dtype, shape, memory_.home);
  if (copy == nullptr) return nullptr;
  CopyElements(dl, copy->tensor.data);
  copy->flags |= TensorObject::kReadOnly;
  return copy;
}

// A read-only copy of a contiguous tensor on a device, or of any tensor of the host's on a device.
Result<TensorObject*> BoundInputs::CopyToDevice(const DLTensor& from, const LinkedDevice& device) {
  if (memory_.apart()) {
    return Fail(StatusCode::kInvalidArgument,
                "a VM with memory of a fixed size takes no inputs from another device");
  }
  Status failed;
  DeviceStreams::Stream* stream = streams_.Find(device.api != nullptr ? device.device : from.device, &failed);
  if (stream == nullptr) return Forward(failed);
  const Span<const std::int64_t> shape(from.shape, static_cast<std::size_t>(from.ndim));
  TensorObject* packed = IsContiguous(from) ? nullptr : CopyOf(from);
  TensorObject* copy =
      packed != nullptr || IsContiguous(from) ? NewHeapTensor(heap_, device, from.dtype, shape) : nullptr;
  const void* data =
      packed != nullptr ? packed->tensor.data : static_cast<const char*>(from.data) + from.byte_offset;
  const std::uint64_t bytes = TensorBytes(from.dtype, shape).value_or(0);
  Status done;
  const DeviceApi& api = *stream->api;
  if (copy != nullptr) {
    const int code =
        api.copy(api.context, copy->tensor.data, device.device, data, from.device, bytes, stream->stream);
    done = code == REWIRE_DEVICE_OK ? DeviceStreams::Synchronize(*stream)
                                    : DeviceFailure(api, stream->device, code);
  }
  if (packed != nullptr) heap_.Release(packed);
  if (copy == nullptr) {
    const Status of_device = heap_.TakeDeviceFailure();
    return Forward(of_device ? memory_.NoMemory("a copied input") : of_device);
  }
  if (done) {
    copy->flags |= TensorObject::kReadOnly;
    return copy;
  }
  heap_.Release(copy);
  return Forward(done, "the copy to its device failed");
}

// A copy of a tree of tensors and integers, with all tensors on the device. Without recursion: lists are
// deep.
Result<TupleObject*> BoundInputs::CopyTreeToDevice(const TupleObject& from, const LinkedDevice& device) {
  struct Open {
    const TupleObject* from;
    TupleObject* to;
    std::uint32_t next;
  };
  Array<Open> open;
  const auto begin = [&](const TupleObject& tuple) {
    TupleObject* to = heap_.NewTuple(kAdtKind, tuple.tag, tuple.count);
    for (std::uint32_t i = 0; to != nullptr && i < tuple.count; ++i) to->fields()[i] = RewireFFIAny{};
    if (to != nullptr) open.push_back({&tuple, to, 0});
    return to;
  };
  TupleObject* const root = begin(from);
  if (root == nullptr) return Forward(memory_.NoMemory("a copied input"));
  Status failed;
  while (failed && !open.empty()) {
    Open& here = open.back();
    if (here.next == here.from->count) {
      open.pop_back();
      continue;
    }
    const RewireFFIAny field = here.from->fields()[here.next];
    RewireFFIAny* to = &here.to->fields()[here.next++];
    if (IsIntegerKind(field.type_index)) {
      *to = field;
    } else if (field.type_index == kAdtKind) {
      TupleObject* inner = begin(*TupleOf(field));  // `here` is not valid any more
      if (inner == nullptr) failed = memory_.NoMemory("a copied input");
      if (inner != nullptr) *to = MakeAny(kAdtKind, inner);
    } else if (field.type_index == kTensorKind) {
      const DLTensor& dl = TensorOf(field)->tensor;
      failed = CheckMemory(dl);
      if (failed && !IsHostDevice(dl.device) && !IsContiguous(dl)) {
        failed = Fail(StatusCode::kInvalidArgument, "memory of a device must be contiguous");
      }
      const Result<TensorObject*> copy =
          failed ? CopyToDevice(dl, device) : Result<TensorObject*>(Forward(failed));
      if (failed && !copy) failed = Forward(copy);
      if (copy) *to = MakeAny(kTensorKind, *copy);
    } else {
      failed = Fail(StatusCode::kInvalidArgument,
                    "only tensors, integers and tuples of them are copied to a device");
    }
  }
  if (failed) return root;
  heap_.Release(root);
  return Forward(failed);
}

// A copy of a tensor that the program cannot use as it lies, with the reason in its flags; null when it can.
Result<TensorObject*> BoundInputs::CopyIfNeeded(InputHandle handle, const DLTensor& dl, InputMode mode) {
  const Module& module = rep_.module();
  const Function& function = module.functions[handle.function];
  const TypeNode& type = function.inputs[handle.index].type.nodes[0];
  const bool typed = type.kind == TypeKind::kTensor;
  const bool on_host = IsHostDevice(dl.device);
  DLTensor wanted = dl;
  const LinkedDevice* device = nullptr;  // that the copy is made on
  if (IsWantedElsewhere(module, type, dl.device)) {
    device = &rep_.devices[type.device];
    // Between two devices there is no way but over the host's own copies.
    if (on_host || device->api == nullptr) wanted.device = device->device;
  }
  if (typed && !TensorFits(module, type, wanted)) {
    return Fail(StatusCode::kInvalidArgument, "{}: {}", InputText(function, handle.index),
                TensorMismatchText(module, type, dl));
  }
  const std::uint64_t element = ElementBytes({dl.dtype.code, dl.dtype.bits, 1});
  const auto address = reinterpret_cast<std::uintptr_t>(dl.data) + dl.byte_offset;
  const bool strided = !IsContiguous(dl);
  const bool misaligned = address % element != 0;
  if (!on_host && (strided || misaligned || (device == nullptr && mode == InputMode::kCopy))) {
    return Fail(StatusCode::kInvalidArgument,
                "{}: memory of a device must be contiguous and aligned to {} bytes, and cannot be copied",
                InputText(function, handle.index), element);
  }
  TensorObject* copy = nullptr;
  if (device != nullptr) {
    const Result<TensorObject*> moved = CopyToDevice(dl, *device);
    if (!moved) return Forward(moved, InputText(function, handle.index));
    copy = *moved;
    copy->flags |= TensorObject::kCopiedFromDevice;
  } else if (strided || misaligned || mode == InputMode::kCopy) {
    copy = CopyOf(dl);
    if (copy == nullptr) return Forward(memory_.NoMemory("a copied input"));
    copy->flags |= strided      ? TensorObject::kCopiedStrided
                   : misaligned ? TensorObject::kCopiedMisaligned
                                : TensorObject::kCopiedOnRequest;
  }
  return copy;
}

}  // namespace rewire
