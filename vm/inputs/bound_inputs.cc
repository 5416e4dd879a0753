// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/inputs/bound_inputs.h"

#include <utility>

#include "rewire/base/likely.h"
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

void BoundInputs::DropAll() {
  for (RewireFFIAny& input : values_) heap_.Unpin(std::exchange(input, RewireFFIAny{}));
}

Result<InputHandle> BoundInputs::Resolve(const InputRef& input) const {
  switch (input.kind_) {
    case InputRef::kHandle: {
      const Module& module = rep_.module();
      const InputHandle handle = input.handle_;
      if (handle.function < module.functions.size() &&
          handle.index < module.functions[handle.function].inputs.size()) {
        return handle;
      }
      return Fail(StatusCode::kInvalidArgument, "the input handle is not one of this Program's");
    }
    case InputRef::kName:
      return program_.FindInput(input.name_);
    case InputRef::kIndex:
      break;
  }
  return program_.FindInput(input.handle_.index);
}

// The fast path of rebinding: other memory with the same form as the current one, which was checked against
// the signature. Returns false and changes nothing if the form differs.
bool BoundInputs::Move(InputHandle handle, const TensorView& view) {
  if (values_.empty()) return false;
  const RewireFFIAny& slot = values_[rep_.functions[handle.function].first_input + handle.index];
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
bool BoundInputs::MayDescribeAnother(const TensorObject& object) const {
  const bool alone = object.local == 1 || (object.local == kShared && object.account == memory_.home);
  return alone && object.alone() && object.storage == nullptr;
}

Status BoundInputs::Set(InputHandle handle, const TensorView& view, InputMode mode) {
  if (REWIRE_UNLIKELY(!IsHostDevice(view.device()))) {
    Result<Tensor> imported = Imported(rep_.devices, view.dl());
    if (!imported)
      return Forward(imported, InputText(rep_.module().functions[handle.function], handle.index));
    if (*imported) return Set(handle, Value(*std::move(imported)));
  }
  if (mode == InputMode::kBorrow && Move(handle, view)) return {};
  const Module& module = rep_.module();
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
  RewireFFIAny* set = Of(handle.function);
  if (set == nullptr) return memory_.NoMemory("inputs");
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
      object = !memory_.apart() ? heap_.NewTensor(static_cast<std::uint32_t>(dl.ndim))
                                : NewSharedTensor(static_cast<std::uint32_t>(dl.ndim), memory_.home);
      if (object == nullptr) return memory_.NoMemory("inputs");
      object->storage = nullptr;
    }
    object->flags = TensorObject::kReadOnly | (view.read_only() ? TensorObject::kImmutable : 0u);
    SetContiguousDims(object, dl.dtype, dl.shape, static_cast<std::uint32_t>(dl.ndim));
    object->tensor.data = view.data();
    object->tensor.byte_offset = 0;
    object->tensor.device = dl.device;
    if (reusable) return {};
  }
  heap_.Unpin(std::exchange(slot, MakeAny(kTensorKind, object)));
  return {};
}

Status BoundInputs::Set(InputHandle handle, const Value& value) {
  RewireFFIAny* set = Of(handle.function);
  if (set == nullptr) return memory_.NoMemory("inputs");
  RewireFFIAny taken{};
  if (Status ok = Take(handle, value, &taken); !ok) return ok;
  heap_.Unpin(std::exchange(set[handle.index], taken));
  return {};
}

// Checks a value against an input's type and takes a reference to what the program will see. That is the
// value itself, or a copy if the value cannot be used in place. Shared tensors are read-only to programs.
Status BoundInputs::Take(InputHandle handle, const Value& value, RewireFFIAny* taken) {
  const Module& module = rep_.module();
  const Function& function = module.functions[handle.function];
  if (value.kind() == ValueKind::kTensor) {
    const Result<Tensor> imported = Imported(rep_.devices, TensorOf(value.any())->tensor);
    if (!imported) return Forward(imported, InputText(function, handle.index));
    if (*imported) return Take(handle, Value(*imported), taken);
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
        CopyTreeToDevice(*TupleOf(value.any()), rep_.devices[type.nodes[0].device]);
    if (!copy) return Forward(copy, InputText(function, handle.index));
    *taken = MakeAny(kAdtKind, *copy);
    return {};
  }
  RewireFFIAny single;
  AccountArray<RewireFFIAny> nodes;  // of a tree
  const bool tree = type.nodes.size() > 1;
  if (tree && !nodes.Make(memory_.home, static_cast<std::uint32_t>(type.nodes.size())))
    return memory_.NoMemory("inputs");
  if (Status ok = CheckValue(module, type, value.any(), tree ? nodes.data() : &single); !ok) {
    return Forward(ok, InputText(function, handle.index));
  }
  *taken = value.any();
  ObjectHeap::Pin(*taken);
  return {};
}

Status BoundInputs::SetAll(std::uint32_t function, Span<const TensorView> tensors) {
  const Function& target = rep_.module().functions[function];
  if (tensors.size() != target.inputs.size()) {
    return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", target.name,
                target.inputs.size(), tensors.size());
  }
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (Status ok = Set({function, i}, tensors[i], InputMode::kBorrow); !ok) return ok;
  }
  return {};
}

Status BoundInputs::Clear(std::string_view function) {
  const Result<std::uint32_t> index = program_.FindFunction(function);
  if (!index) return Forward(index);
  if (values_.empty()) return {};
  RewireFFIAny* set = Of(*index);
  for (std::uint32_t i = 0; i < rep_.functions[*index].input_count; ++i) {
    heap_.Unpin(std::exchange(set[i], RewireFFIAny{}));
  }
  return {};
}

Status BoundInputs::Missing(std::uint32_t function, const RewireFFIAny* input) {
  const std::uint32_t first = rep_.functions[function].first_input;
  return Fail(StatusCode::kInvalidArgument, "{} is not set; set it before invoking",
              InputText(rep_.module().functions[function],
                        static_cast<std::uint32_t>(input - values_.data()) - first));
}

Value BoundInputs::ValueOf(InputHandle handle) {
  if (values_.empty()) return {};
  const RewireFFIAny value = values_[rep_.functions[handle.function].first_input + handle.index];
  if (!ObjectHeap::IsUncounted(value))
    heap_.Share(value);  // pinned references to constants are counted already
  if (IsObjectKind(value.type_index)) ObjectOf(value)->AddStrong();
  return Value::Adopt(value);
}

Result<InputReport> BoundInputs::Report(InputHandle handle) const {
  const LinkedFunction& function = rep_.functions[handle.function];
  const RewireFFIAny value = values_.empty() ? RewireFFIAny{} : values_[function.first_input + handle.index];
  if (value.type_index == kRewireFFINone) {
    return Fail(StatusCode::kInvalidArgument, "{} is not set",
                InputText(rep_.module().functions[handle.function], handle.index));
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
    const std::uint32_t needed = rep_.output_alignment;
    const auto address = reinterpret_cast<std::uintptr_t>(tensor->tensor.data) + tensor->tensor.byte_offset;
    if (IsHostDevice(tensor->tensor.device) && address % needed != 0) {
      report.reason =
          Format("kernels that need memory aligned to {} bytes are given copies, in every run", needed);
    }
  }
  return report;
}

}  // namespace rewire
