// SPDX-License-Identifier: Apache-2.0
//
// Binding outputs: the host's interface, and the checks before a run.
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/run/vm_impl.h"
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

Result<OutputSlot*> VmImpl::SlotOf(OutputHandle handle) {
  const Module& module = rep.module();
  if (Status ok = CheckOutput(module, handle); !ok) return Forward(ok);
  const auto count = static_cast<std::uint32_t>(module.functions[handle.function].output_names.size());
  if (outputs.empty() && !outputs.Make(home, static_cast<std::uint32_t>(module.functions.size()))) {
    return Forward(NoMemory("outputs"));
  }
  OutputSlots& slots = outputs[handle.function];
  if (slots.leaves.empty() && !slots.leaves.Make(home, count)) return Forward(NoMemory("outputs"));
  return &slots.leaves[handle.leaf];
}

// Copies between devices need the device's functions.
Status VmImpl::CheckDevice(OutputHandle handle, DLDevice device) const {
  for (const LinkedDevice& linked : rep.devices) {
    if (IsSameDevice(linked.device, device)) return {};
  }
  return Invalid(rep.module().functions[handle.function], handle.leaf,
                 {"memory on {} given, a device that the executable does not name",
                  DeviceText({DeviceTypeOf(device), device.device_id, {}})});
}

// Empties a slot, or makes it ready for `mode`.
void VmImpl::ResetSlot(OutputHandle handle, OutputSlot* slot, OutputSlot::Mode mode) {
  OutputSlots& slots = outputs[handle.function];
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

Status VmImpl::SetOutput(OutputHandle handle, const TensorView& view) {
  const Result<Tensor> imported = Imported(view.dl());
  if (!imported) return Forward(imported, "an output");
  if (*imported) return SetOutput(handle, *imported);
  Result<OutputSlot*> found = SlotOf(handle);
  if (!found) return Forward(found);
  OutputSlot* slot = *found;
  const Function& function = rep.module().functions[handle.function];
  const TypeNode& type = function.result.nodes[rep.functions[handle.function].leaf_nodes[handle.leaf]];
  const DLTensor& dl = view.dl();
  if (view.read_only()) return Invalid(function, handle.leaf, "memory that is const cannot be written");
  // Memory on another device is filled at the end of the run.
  DLTensor there = dl;
  if (type.kind == TypeKind::kTensor && type.device != kAnyDevice) {
    there.device = rep.devices[type.device].device;
  }
  if (type.kind == TypeKind::kTensor && !TensorFits(rep.module(), type, there)) {
    return Invalid(function, handle.leaf, TensorMismatchText(rep.module(), type, dl));
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
  ResetSlot(handle, slot, OutputSlot::kTensor);
  slot->Describe(view);
  slot->capacity = *bytes;
  slot->device = dl.device;
  return {};
}

Status VmImpl::SetOutput(OutputHandle handle, const OutputCapacity& capacity) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  const Function& function = rep.module().functions[handle.function];
  if (capacity.data == nullptr) return Invalid(function, handle.leaf, "no memory given");
  MemoryRange range;
  if (!FindRange(capacity.data, capacity.bytes, &range)) {
    return Invalid(function, handle.leaf,
                   {"a capacity of {} bytes reaches beyond the address space; give the size of the memory",
                    capacity.bytes});
  }
  if (Status ok = CheckDevice(handle, capacity.device); !ok) return ok;
  ResetSlot(handle, *slot, OutputSlot::kCapacity);
  (*slot)->data = capacity.data;
  (*slot)->capacity = capacity.bytes;
  (*slot)->device = capacity.device;
  return {};
}

Status VmImpl::SetOutput(OutputHandle handle, const OutputAllocator& allocator) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  if (allocator.allocate == nullptr) {
    return Invalid(rep.module().functions[handle.function], handle.leaf, "no allocator given");
  }
  if (Status ok = CheckDevice(handle, allocator.device); !ok) return ok;
  ResetSlot(handle, *slot, OutputSlot::kAllocator);
  (*slot)->allocator = allocator;
  (*slot)->device = allocator.device;
  return {};
}

Status VmImpl::Donate(InputHandle input, OutputHandle handle) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  const Function& function = rep.module().functions[handle.function];
  if (input.function != handle.function) {
    return Invalid(function, handle.leaf, "the donated input belongs to another function");
  }
  const FunctionPlan& plan = rep.plans[handle.function];
  for (std::uint32_t leaf = 0; leaf < plan.leaves.size(); ++leaf) {
    if (leaf == handle.leaf || !plan.leaves[leaf].ReturnsInput(input.index)) continue;
    return Invalid(function, handle.leaf,
                   {"input {} cannot be donated, output {} may return it too",
                    function.inputs[input.index].name, function.output_names[leaf]});
  }
  ResetSlot(handle, *slot, OutputSlot::kCapacity);
  (*slot)->donated = true;
  (*slot)->donated_input = input.index;
  return {};
}

}  // namespace rewire
