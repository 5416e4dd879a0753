// SPDX-License-Identifier: Apache-2.0
//
// Binding outputs: all forms of memory that a host gives, and what is checked of it at once.
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/outputs/bound_outputs.h"
#include "rewire/vm/value/device_tensor.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/shape.h"
#include "rewire/vm/value/type_check.h"

namespace rewire {

std::string ObstaclesText(std::uint8_t obstacles) {
  static constexpr struct {
    OutputSlot::Obstacle obstacle;
    const char* text;
  } kTexts[] = {
      {OutputSlot::kOverlapsInput, "the bound memory overlaps an input of the same call"},
      {OutputSlot::kStrided, "the bound memory is strided"},
      {OutputSlot::kMisaligned, "the bound memory is not aligned as the kernels need"},
      {OutputSlot::kDonationBarred, "the donated input is still read when the output is first written"},
      {OutputSlot::kElsewhere, "the value was made elsewhere"},
  };
  std::string text;
  for (const auto& each : kTexts) {
    if ((obstacles & each.obstacle) != 0) Append(&text, {"{}{}", text.empty() ? "" : "; ", each.text});
  }
  return text;
}

std::string OutputText(const Function& function, std::uint32_t leaf) {
  return Format("function {}, output {} ({})", function.name, leaf, function.output_names[leaf]);
}

namespace {

Status Invalid(const Function& function, std::uint32_t leaf, const Message& what) {
  return Fail(StatusCode::kInvalidArgument, "{}: {}", OutputText(function, leaf), what.Text());
}

}  // namespace

Result<OutputSlot*> BoundOutputs::SlotOf(OutputHandle handle) {
  const Module& module = rep_.module();
  if (Status ok = CheckOutput(module, handle); !ok) return Forward(ok);
  const auto count = static_cast<std::uint32_t>(module.functions[handle.function].output_names.size());
  if (slots_.empty() && !slots_.Make(memory_.home, static_cast<std::uint32_t>(module.functions.size()))) {
    return Forward(memory_.NoMemory("outputs"));
  }
  OutputSlots& slots = slots_[handle.function];
  if (slots.leaves.empty() && !slots.leaves.Make(memory_.home, count))
    return Forward(memory_.NoMemory("outputs"));
  return &slots.leaves[handle.leaf];
}

// Copies between devices need the device's functions.
Status BoundOutputs::CheckDevice(OutputHandle handle, DLDevice device) const {
  for (const LinkedDevice& linked : rep_.devices) {
    if (IsSameDevice(linked.device, device)) return {};
  }
  return Invalid(rep_.module().functions[handle.function], handle.leaf,
                 {"memory on {} given, a device that the executable does not name",
                  DeviceText({DeviceTypeOf(device), device.device_id, {}})});
}

// Empties a slot, or makes it ready for `mode`.
void BoundOutputs::Reset(OutputHandle handle, OutputSlot* slot, OutputSlot::Mode mode) {
  OutputSlots& slots = slots_[handle.function];
  slots.bound -= slot->mode != OutputSlot::kUnbound ? 1 : 0;
  slots.bound += mode != OutputSlot::kUnbound ? 1 : 0;
  slot->mode = mode;
  slot->donated = false;
  slot->strided = false;
  slot->owner = Value();
  slot->storage = nullptr;
  slot->data = nullptr;
  slot->capacity = 0;
}

// The fast path of rebinding: other memory with the same form as the bound memory, which was checked against
// the signature. Returns false and changes nothing if the form differs.
bool BoundOutputs::Move(OutputHandle handle, const TensorView& view) {
  if (handle.function >= slots_.size() || handle.leaf >= slots_[handle.function].leaves.size()) return false;
  OutputSlot& slot = slots_[handle.function].leaves[handle.leaf];
  if (slot.mode != OutputSlot::kTensor || slot.owner.any().type_index != kRewireFFINone || view.read_only() ||
      slot.strided || view.data() == nullptr || !SameForm(slot.form, view.dl())) {
    return false;
  }
  MemoryRange range;
  if (!FindRange(view.data(), slot.capacity, &range)) return false;
  slot.MoveTo(view.data());
  return true;
}

Status BoundOutputs::Set(const OutputRef& output, const TensorView& tensor) {
  const bool on_host = IsHostDevice(tensor.device());
  if (on_host && output.kind_ == OutputRef::kHandle && Move(output.handle_, tensor)) return {};
  const Result<OutputHandle> handle = Resolve(output);
  if (!handle) return Forward(handle);
  return Set(*handle, tensor);
}

Status BoundOutputs::Set(OutputHandle handle, const TensorView& view) {
  const Result<Tensor> imported = Imported(rep_.devices, view.dl());
  if (!imported) return Forward(imported, "an output");
  if (*imported) return Set(handle, *imported);
  Result<OutputSlot*> found = SlotOf(handle);
  if (!found) return Forward(found);
  OutputSlot* slot = *found;
  const Function& function = rep_.module().functions[handle.function];
  const TypeNode& type = function.result.nodes[rep_.functions[handle.function].leaf_nodes[handle.leaf]];
  const DLTensor& dl = view.dl();
  if (view.read_only()) return Invalid(function, handle.leaf, "memory that is const cannot be written");
  // Memory on another device is filled at the end of the run.
  DLTensor there = dl;
  if (type.kind == TypeKind::kTensor && type.device != kAnyDevice) {
    there.device = rep_.devices[type.device].device;
  }
  if (type.kind == TypeKind::kTensor && !TensorFits(rep_.module(), type, there)) {
    return Invalid(function, handle.leaf, TensorMismatchText(rep_.module(), type, dl));
  }
  if (type.kind == TypeKind::kClosure || type.kind == TypeKind::kStorage) {
    return Invalid(function, handle.leaf, "only tensors can be bound");
  }
  const std::optional<std::uint64_t> bytes =
      dl.ndim <= kMaxRank && IsValidDType(dl.dtype) ? TensorBytes(dl.dtype, view.shape()) : std::nullopt;
  if (!bytes)
    return Invalid(function, handle.leaf, {"{} has a wrong element type, rank or dimension", TensorText(dl)});
  if (view.data() == nullptr && *bytes > 0) return Invalid(function, handle.leaf, "no memory given");
  MemoryRange range;
  if (!FindRange(dl, &range)) {
    return Invalid(function, handle.leaf, {"{} reaches beyond the address space", TensorText(dl)});
  }
  if (*bytes > 0 && !ElementsAreApart(dl)) {
    return Invalid(function, handle.leaf, "its strides let elements share memory");
  }
  if (Status ok = CheckDevice(handle, dl.device); !ok) return ok;
  Reset(handle, slot, OutputSlot::kTensor);
  slot->Describe(view);
  slot->capacity = *bytes;
  slot->device = dl.device;
  return {};
}

Status BoundOutputs::Set(OutputHandle handle, const Tensor& given) {
  const Result<Tensor> imported = Imported(rep_.devices, given.dl());
  if (!imported) return Forward(imported);
  const Tensor& tensor = *imported ? *imported : given;
  if (Status ok = Set(handle, tensor.view()); !ok) return ok;
  OutputSlot& slot = slots_[handle.function].leaves[handle.leaf];
  slot.owner = Value(tensor);
  slot.storage = TensorOf(slot.owner.any())->storage;
  return {};
}

Status BoundOutputs::Set(OutputHandle handle, const OutputCapacity& capacity) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  const Function& function = rep_.module().functions[handle.function];
  if (capacity.data == nullptr) return Invalid(function, handle.leaf, "no memory given");
  MemoryRange range;
  if (!FindRange(capacity.data, capacity.bytes, &range)) {
    return Invalid(function, handle.leaf,
                   {"a capacity of {} bytes reaches beyond the address space; give the size of the memory",
                    capacity.bytes});
  }
  if (Status ok = CheckDevice(handle, capacity.device); !ok) return ok;
  Reset(handle, *slot, OutputSlot::kCapacity);
  (*slot)->data = capacity.data;
  (*slot)->capacity = capacity.bytes;
  (*slot)->device = capacity.device;
  return {};
}

Status BoundOutputs::Set(OutputHandle handle, const OutputAllocator& allocator) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  if (allocator.allocate == nullptr) {
    return Invalid(rep_.module().functions[handle.function], handle.leaf, "no allocator given");
  }
  if (Status ok = CheckDevice(handle, allocator.device); !ok) return ok;
  Reset(handle, *slot, OutputSlot::kAllocator);
  (*slot)->allocator = allocator;
  (*slot)->device = allocator.device;
  return {};
}

// One binding of a call's own.
Status BoundOutputs::SetForCall(std::uint32_t function, const OutputBinding& binding) {
  const OutputRef& ref = binding.output;
  const std::string& name = rep_.module().functions[function].name;
  const Result<OutputHandle> handle = ref.kind_ == OutputRef::kHandle ? Result<OutputHandle>(ref.handle_)
                                      : ref.kind_ == OutputRef::kName
                                          ? program_.FindOutput(ref.name_, name)
                                          : program_.FindOutput(ref.handle_.leaf, name);
  if (!handle) return Forward(handle);
  if (handle->function != function) {
    return Fail(StatusCode::kInvalidArgument, "an output of another function than {}", name);
  }
  return Set(*handle, binding.tensor);
}

Status BoundOutputs::Donate(InputHandle input, OutputHandle handle) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  const Function& function = rep_.module().functions[handle.function];
  if (input.function != handle.function) {
    return Invalid(function, handle.leaf, "the donated input belongs to another function");
  }
  const FunctionPlan& plan = rep_.plans[handle.function];
  for (std::uint32_t leaf = 0; leaf < plan.leaves.size(); ++leaf) {
    if (leaf == handle.leaf || !plan.leaves[leaf].ReturnsInput(input.index)) continue;
    return Invalid(function, handle.leaf,
                   {"input {} cannot be donated, output {} may return it too",
                    function.inputs[input.index].name, function.output_names[leaf]});
  }
  Reset(handle, *slot, OutputSlot::kCapacity);
  (*slot)->donated = true;
  (*slot)->donated_input = input.index;
  return {};
}

}  // namespace rewire
