// SPDX-License-Identifier: Apache-2.0
//
// Inputs that cannot be used in place: the reasons, and the copies.
#include "rewire/vm/run/vm_impl.h"
#include "rewire/vm/value/shape.h"
#include "rewire/vm/value/type_check.h"

namespace rewire {

std::string InputText(const Function& function, std::uint32_t index) {
  return Format("function {}, input {} ({})", function.name, index, function.inputs[index].name);
}

Status CheckMemory(const DLTensor& dl) {
  MemoryRange range;
  if (!FindRange(dl, &range)) {
    return Fail(StatusCode::kInvalidArgument, "{} reaches beyond the address space", TensorText(dl));
  }
  if (dl.data != nullptr || range.empty()) return {};
  return Fail(StatusCode::kInvalidArgument, "{} has no data", TensorText(dl));
}

// A read-only copy of a contiguous tensor on a device, or of any tensor of the host's on a device.
Result<TensorObject*> VirtualMachine::Impl::CopyToDevice(const DLTensor& from, const LinkedDevice& device) {
  if (account != home) {
    return Fail(StatusCode::kInvalidArgument,
                "a VM with memory of a fixed size takes no inputs from another device");
  }
  const DeviceApi* api = device.api;
  for (const LinkedDevice& linked : rep.devices) {
    if (api == nullptr && linked.device.device_type == from.device.device_type) api = linked.api;
  }
  if (api == nullptr) {
    return Fail(StatusCode::kInvalidArgument, "the tensor is on a device that the executable does not name");
  }
  const Span<const std::int64_t> shape(from.shape, static_cast<std::size_t>(from.ndim));
  TensorObject* packed = IsContiguous(from) ? nullptr : CopyOf(from);
  TensorObject* copy =
      packed != nullptr || IsContiguous(from) ? NewHeapTensor(heap, device, from.dtype, shape) : nullptr;
  const void* data =
      packed != nullptr ? packed->tensor.data : static_cast<const char*>(from.data) + from.byte_offset;
  const std::uint64_t bytes = TensorBytes(from.dtype, shape).value_or(0);
  const bool copied =
      copy != nullptr &&
      api->copy(api->context, copy->tensor.data, device.device, data, from.device, bytes, nullptr) == 0 &&
      api->synchronize(api->context, api == device.api ? device.device : from.device, nullptr) == 0;
  if (packed != nullptr) heap.Release(packed);
  if (copy == nullptr) return Forward(NoMemory("a copied input"));
  if (copied) {
    copy->flags |= TensorObject::kReadOnly;
    return copy;
  }
  heap.Release(copy);
  return Fail(StatusCode::kRuntimeFailed, "the copy to its device failed: {}", TakeKernelError().message);
}

// A copy of a tensor that the program cannot use as it lies, with the reason in its flags; null when it can.
Result<TensorObject*> VirtualMachine::Impl::CopyIfNeeded(InputHandle handle, const DLTensor& dl,
                                                         InputMode mode) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  const TypeNode& type = function.inputs[handle.index].type.nodes[0];
  const bool typed = type.kind == TypeKind::kTensor;
  const bool on_host = dl.device.device_type == kDLCPU;
  DLTensor wanted = dl;
  const LinkedDevice* device = nullptr;  // that the copy is made on
  if (typed && !IsOnDevice(module, type.device, dl.device)) {
    device = &rep.devices[type.device];
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
    if (copy == nullptr) return Forward(NoMemory("a copied input"));
    copy->flags |= strided      ? TensorObject::kCopiedStrided
                   : misaligned ? TensorObject::kCopiedMisaligned
                                : TensorObject::kCopiedOnRequest;
  }
  return copy;
}

Result<InputReport> VirtualMachine::TryInputReport(const InputRef& input) const {
  const Result<InputHandle> handle = Resolve(input);
  if (!handle) return Forward(handle);
  const Impl& impl = *impl_;
  const LinkedFunction& function = impl.rep.functions[handle->function];
  const RewireFFIAny value =
      impl.inputs.empty() ? RewireFFIAny{} : impl.inputs[function.first_input + handle->index];
  if (value.type_index == kRewireFFINone) {
    return Fail(StatusCode::kInvalidArgument, "{} is not set",
                InputText(impl.rep.module().functions[handle->function], handle->index));
  }
  InputReport report;
  if (value.type_index != kTensorKind) return report;
  const TensorObject* tensor = TensorOf(value);
  report.copied = true;
  if ((tensor->flags & TensorObject::kCopiedFromDevice) != 0) {
    report.reason = "the memory is on another device";
  } else if ((tensor->flags & TensorObject::kCopiedStrided) != 0) {
    report.reason = "the memory is strided";
  } else if ((tensor->flags & TensorObject::kCopiedMisaligned) != 0) {
    report.reason = "the memory is not aligned to its elements";
  } else if ((tensor->flags & TensorObject::kCopiedOnRequest) != 0) {
    report.reason = "a copy was asked for";
  } else {
    report.copied = false;
    const std::uint32_t needed = impl.rep.output_alignment;
    const auto address = reinterpret_cast<std::uintptr_t>(tensor->tensor.data) + tensor->tensor.byte_offset;
    if (tensor->tensor.device.device_type == kDLCPU && address % needed != 0) {
      report.reason =
          Format("kernels that need memory aligned to {} bytes are given copies, in every run", needed);
    }
  }
  return report;
}

}  // namespace rewire
