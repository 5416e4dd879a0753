// SPDX-License-Identifier: Apache-2.0
//
// A VM's inputs: setting them, and what becomes of one that cannot be used as it lies.
#include <utility>

#include "rewire/base/likely.h"
#include "rewire/vm/run/vm_impl.h"
#include "rewire/vm/value/device_tensor.h"
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

Result<InputHandle> VmImpl::Resolve(const InputRef& input) const {
  switch (input.kind_) {
    case InputRef::kHandle: {
      const Module& module = rep.module();
      const InputHandle handle = input.handle_;
      if (handle.function < module.functions.size() &&
          handle.index < module.functions[handle.function].inputs.size()) {
        return handle;
      }
      return Fail(StatusCode::kInvalidArgument, "the input handle is not one of this Program's");
    }
    case InputRef::kName:
      return program.FindInput(input.name_);
    case InputRef::kIndex:
      return program.FindInput(input.handle_.index);
  }
  return Fail(StatusCode::kInternal, "an input reference of no kind");
}

// The fast path of rebinding: other memory with the same form as the current one, which was checked against
// the signature. Returns false and changes nothing if the form differs.
bool VmImpl::MoveInput(InputHandle handle, const TensorView& view) {
  if (inputs.empty()) return false;
  const RewireFFIAny& slot = inputs[rep.functions[handle.function].first_input + handle.index];
  if (slot.type_index != kTensorKind) return false;
  TensorObject* object = TensorOf(slot);
  if (!MayDescribeAnother(*object) || !SameForm(object->tensor, view.dl())) return false;
  const std::uint64_t element = ElementBytes({view.dtype().code, view.dtype().bits, 1});
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  if ((element & (element - 1)) != 0 || (address & (element - 1)) != 0 || address == 0) return false;
  object->flags = (object->flags & ~std::uint32_t{TensorObject::kImmutable}) |
                  (view.read_only() ? TensorObject::kImmutable : 0u);
  object->tensor.data = view.data();
  return true;
}

// The object of a borrowed tensor is reused for the next tensor if nobody else refers to it.
bool VmImpl::MayDescribeAnother(const TensorObject& object) const {
  const bool alone = object.local == 1 || (object.local == kShared && object.account == home);
  return alone && object.alone() && object.storage == nullptr;
}

// A tensor that has a handle of the driver's, with an address in its place. Empty for all others.
Result<Tensor> VmImpl::Imported(const DLTensor& dl) const {
  if (REWIRE_LIKELY(IsHostDevice(dl.device))) return Tensor();
  for (const LinkedDevice& linked : rep.devices) {
    if (linked.api == nullptr || !HasHandles(*linked.api) || !IsSameDevice(linked.device, dl.device))
      continue;
    const TensorView view(dl);
    const bool sound = dl.data != nullptr && dl.ndim <= kMaxRank && IsValidDType(dl.dtype) &&
                       TensorBytes(dl.dtype, view.shape());
    return sound ? ImportHandle(*linked.api, view) : Tensor();
  }
  return Tensor();
}

Status VmImpl::SetInput(InputHandle handle, const TensorView& view, InputMode mode) {
  if (REWIRE_UNLIKELY(!IsHostDevice(view.device()))) {
    Result<Tensor> imported = Imported(view.dl());
    if (!imported) return Forward(imported, InputText(rep.module().functions[handle.function], handle.index));
    if (*imported) return SetInput(handle, Value(*std::move(imported)));
  }
  if (mode == InputMode::kBorrow && MoveInput(handle, view)) return {};
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  const TypeNode& type = function.inputs[handle.index].type.nodes[0];
  const DLTensor& dl = view.dl();
  if (type.kind != TypeKind::kTensor && type.kind != TypeKind::kValue) {
    return Fail(StatusCode::kInvalidArgument, "{}: {} expected, a tensor given",
                InputText(function, handle.index),
                TypeText(function.inputs[handle.index].type, module.symbols));
  }
  if (dl.ndim > kMaxRank || !IsValidDType(dl.dtype) || !TensorBytes(dl.dtype, view.shape())) {
    return Fail(StatusCode::kInvalidArgument, "{}: {} has a wrong element type, rank or dimension",
                InputText(function, handle.index), TensorText(dl));
  }
  if (Status ok = CheckMemory(dl); !ok) return Forward(ok, InputText(function, handle.index));
  RewireFFIAny* set = InputsOf(handle.function);
  if (set == nullptr) return NoMemory("inputs");
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  const std::uint64_t element = ElementBytes({dl.dtype.code, dl.dtype.bits, 1});
  TensorObject* object = nullptr;
  RewireFFIAny& slot = set[handle.index];
  const bool as_it_lies = mode == InputMode::kBorrow && view.IsContiguous() && address % element == 0 &&
                          (type.kind == TypeKind::kTensor ? TensorFits(module, type, dl)
                                                          : !IsWantedElsewhere(module, type, dl.device));
  if (REWIRE_UNLIKELY(!as_it_lies)) {
    const Result<TensorObject*> copy = CopyIfNeeded(handle, dl, mode);
    if (!copy) return Forward(copy);
    object = *copy;
  } else {
    object = slot.type_index == kTensorKind ? TensorOf(slot) : nullptr;
    const bool reusable = object != nullptr && MayDescribeAnother(*object) &&
                          object->capacity >= static_cast<std::uint32_t>(dl.ndim);
    if (!reusable) {
      // Not in an arena: it stays between runs.
      object = account == home ? heap.NewTensor(static_cast<std::uint32_t>(dl.ndim))
                               : NewSharedTensor(static_cast<std::uint32_t>(dl.ndim), home);
      if (object == nullptr) return NoMemory("inputs");
      object->storage = nullptr;
    }
    object->flags = TensorObject::kReadOnly | (view.read_only() ? TensorObject::kImmutable : 0u);
    SetContiguousDims(object, dl.dtype, dl.shape, static_cast<std::uint32_t>(dl.ndim));
    object->tensor.data = view.data();
    object->tensor.byte_offset = 0;
    object->tensor.device = dl.device;
    if (reusable) return {};
  }
  heap.Unpin(std::exchange(slot, MakeAny(kTensorKind, object)));
  return {};
}

Status VmImpl::SetInput(InputHandle handle, const Value& value) {
  RewireFFIAny* set = InputsOf(handle.function);
  if (set == nullptr) return NoMemory("inputs");
  RewireFFIAny taken{};
  if (Status ok = TakeInput(handle, value, &taken); !ok) return ok;
  heap.Unpin(std::exchange(set[handle.index], taken));
  return {};
}

// Checks a value against an input's type and takes a reference to what the program will see. That is the
// value itself, or a copy if the value cannot be used in place. Shared tensors are read-only to programs.
Status VmImpl::TakeInput(InputHandle handle, const Value& value, RewireFFIAny* taken) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  if (value.kind() == ValueKind::kTensor) {
    const Result<Tensor> imported = Imported(TensorOf(value.any())->tensor);
    if (!imported) return Forward(imported, InputText(function, handle.index));
    if (*imported) return TakeInput(handle, Value(*imported), taken);
    if (Status ok = CheckMemory(TensorOf(value.any())->tensor); !ok) {
      return Forward(ok, InputText(function, handle.index));
    }
    const Result<TensorObject*> copy =
        CopyIfNeeded(handle, TensorOf(value.any())->tensor, InputMode::kBorrow);
    if (!copy) return Forward(copy);
    if (*copy != nullptr) {
      *taken = MakeAny(kTensorKind, *copy);
      return {};
    }
  }
  const Type& type = function.inputs[handle.index].type;
  if (value.kind() == ValueKind::kAdt && type.nodes[0].kind == TypeKind::kValue &&
      type.nodes[0].device != kHostDevice) {
    const Result<TupleObject*> copy =
        CopyTreeToDevice(*TupleOf(value.any()), rep.devices[type.nodes[0].device]);
    if (!copy) return Forward(copy, InputText(function, handle.index));
    *taken = MakeAny(kAdtKind, *copy);
    return {};
  }
  RewireFFIAny single;
  AccountArray<RewireFFIAny> nodes;  // of a tree
  const bool tree = type.nodes.size() > 1;
  if (tree && !nodes.Make(home, static_cast<std::uint32_t>(type.nodes.size()))) return NoMemory("inputs");
  if (Status ok = CheckValue(module, type, value.any(), tree ? nodes.data() : &single); !ok) {
    return Forward(ok, InputText(function, handle.index));
  }
  *taken = value.any();
  ObjectHeap::Pin(*taken);
  return {};
}

Status VmImpl::SetInputs(std::uint32_t function, Span<const TensorView> tensors) {
  if (Status ok = CheckFunction(function); !ok) return ok;
  const Function& target = rep.module().functions[function];
  if (tensors.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", target.name,
                target.inputs.size(), tensors.size());
  }
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (Status ok = SetInput({function, i}, tensors[i], InputMode::kBorrow); !ok) return ok;
  }
  return {};
}

Status VmImpl::ClearInputs(std::string_view function) {
  const Result<std::uint32_t> index = program.FindFunction(function);
  if (!index) return Forward(index);
  if (inputs.empty()) return {};
  RewireFFIAny* set = InputsOf(*index);
  for (std::uint32_t i = 0; i < rep.functions[*index].input_count; ++i) {
    heap.Unpin(std::exchange(set[i], RewireFFIAny{}));
  }
  return {};
}

// A read-only copy of a host tensor with one reference of the VM's; null when there is no memory. Not in an
// arena: it stays between runs.
TensorObject* VmImpl::CopyOf(const DLTensor& dl) {
  const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
  TensorObject* copy = account == home ? NewHeapTensor(heap, rep.devices[kHostDevice], dl.dtype, shape)
                                       : NewSharedHostTensor(dl.dtype, shape, home);
  if (copy == nullptr) return nullptr;
  CopyElements(dl, copy->tensor.data);
  copy->flags |= TensorObject::kReadOnly;
  return copy;
}

// A read-only copy of a contiguous tensor on a device, or of any tensor of the host's on a device.
Result<TensorObject*> VmImpl::CopyToDevice(const DLTensor& from, const LinkedDevice& device) {
  if (account != home) {
    return Fail(StatusCode::kInvalidArgument,
                "a VM with memory of a fixed size takes no inputs from another device");
  }
  Status failed;
  DeviceStreams::Stream* stream = streams.Find(device.api != nullptr ? device.device : from.device, &failed);
  if (stream == nullptr) return Forward(failed);
  const Span<const std::int64_t> shape(from.shape, static_cast<std::size_t>(from.ndim));
  TensorObject* packed = IsContiguous(from) ? nullptr : CopyOf(from);
  TensorObject* copy =
      packed != nullptr || IsContiguous(from) ? NewHeapTensor(heap, device, from.dtype, shape) : nullptr;
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
  if (packed != nullptr) heap.Release(packed);
  if (copy == nullptr) {
    const Status of_device = heap.TakeDeviceFailure();
    return Forward(of_device ? NoMemory("a copied input") : of_device);
  }
  if (done) {
    copy->flags |= TensorObject::kReadOnly;
    return copy;
  }
  heap.Release(copy);
  return Forward(done, "the copy to its device failed");
}

// A copy of a tree of tensors and integers, with all tensors on the device. Without recursion: lists are
// deep.
Result<TupleObject*> VmImpl::CopyTreeToDevice(const TupleObject& from, const LinkedDevice& device) {
  struct Open {
    const TupleObject* from;
    TupleObject* to;
    std::uint32_t next;
  };
  Array<Open> open;
  const auto begin = [&](const TupleObject& tuple) {
    TupleObject* to = heap.NewTuple(kAdtKind, tuple.tag, tuple.count);
    for (std::uint32_t i = 0; to != nullptr && i < tuple.count; ++i) to->fields()[i] = RewireFFIAny{};
    if (to != nullptr) open.push_back({&tuple, to, 0});
    return to;
  };
  TupleObject* const root = begin(from);
  if (root == nullptr) return Forward(NoMemory("a copied input"));
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
      if (inner == nullptr) failed = NoMemory("a copied input");
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
  heap.Release(root);
  return Forward(failed);
}

// A copy of a tensor that the program cannot use as it lies, with the reason in its flags; null when it can.
Result<TensorObject*> VmImpl::CopyIfNeeded(InputHandle handle, const DLTensor& dl, InputMode mode) {
  const Module& module = rep.module();
  const Function& function = module.functions[handle.function];
  const TypeNode& type = function.inputs[handle.index].type.nodes[0];
  const bool typed = type.kind == TypeKind::kTensor;
  const bool on_host = IsHostDevice(dl.device);
  DLTensor wanted = dl;
  const LinkedDevice* device = nullptr;  // that the copy is made on
  if (IsWantedElsewhere(module, type, dl.device)) {
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

Result<InputReport> VmImpl::ReportInput(InputHandle handle) const {
  const LinkedFunction& function = rep.functions[handle.function];
  const RewireFFIAny value = inputs.empty() ? RewireFFIAny{} : inputs[function.first_input + handle.index];
  if (value.type_index == kRewireFFINone) {
    return Fail(StatusCode::kInvalidArgument, "{} is not set",
                InputText(rep.module().functions[handle.function], handle.index));
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
    const std::uint32_t needed = rep.output_alignment;
    const auto address = reinterpret_cast<std::uintptr_t>(tensor->tensor.data) + tensor->tensor.byte_offset;
    if (IsHostDevice(tensor->tensor.device) && address % needed != 0) {
      report.reason =
          Format("kernels that need memory aligned to {} bytes are given copies, in every run", needed);
    }
  }
  return report;
}

}  // namespace rewire
