// SPDX-License-Identifier: Apache-2.0
// Binding outputs: the host's side, and what is checked before a run.
#include <algorithm>

#include "base/array.h"
#include "executable_format/instruction_text.h"
#include "vm/outputs/memory_range.h"
#include "vm/shape.h"
#include "vm/type_check.h"
#include "vm/vm_impl.h"

namespace rewire {

const char* ObstacleText(OutputSlot::Obstacle obstacle) {
  switch (obstacle) {
    case OutputSlot::kNoObstacle:
      return "made in place";
    case OutputSlot::kStrided:
      return "the bound memory is strided";
    case OutputSlot::kMisaligned:
      return "the bound memory is not aligned as the kernels need";
    case OutputSlot::kOverlapsInput:
      return "the bound memory overlaps an input of the same call";
    case OutputSlot::kDonationBarred:
      return "the donated input is still read when the output is first written";
    case OutputSlot::kElsewhere:
      return "the value was made elsewhere";
  }
  return "unknown";
}

namespace {

using Impl = VirtualMachine::Impl;

std::string OutputText(const Function& function, std::uint32_t leaf) {
  return Format("function {}, output {} ({})", function.name, leaf, function.output_names[leaf]);
}

Status Invalid(const Function& function, std::uint32_t leaf, const Message& what) {
  return Fail(StatusCode::kInvalidArgument, "{}: {}", OutputText(function, leaf), what.Text());
}

}  // namespace

Result<OutputSlot*> Impl::SlotOf(OutputHandle handle) {
  const Module& module = rep.module();
  if (Status ok = CheckOutput(module, handle); !ok) return Forward(ok);
  if (running.load(std::memory_order_relaxed)) {
    return Fail(StatusCode::kBusy, "this VirtualMachine is running; its outputs cannot be bound now");
  }
  const auto count = static_cast<std::uint32_t>(module.functions[handle.function].output_names.size());
  if (outputs.empty() && !outputs.Make(home, static_cast<std::uint32_t>(module.functions.size()))) {
    return Forward(NoMemory("outputs"));
  }
  OutputSlots& slots = outputs[handle.function];
  if (slots.leaves.empty() && !slots.leaves.Make(home, count)) return Forward(NoMemory("outputs"));
  return &slots.leaves[handle.leaf];
}

// Copies between devices need the device's functions.
Status Impl::CheckDevice(OutputHandle handle, DLDevice device) const {
  for (const LinkedDevice& linked : rep.devices) {
    if (linked.device.device_type == device.device_type && linked.device.device_id == device.device_id)
      return {};
  }
  return Invalid(rep.module().functions[handle.function], handle.leaf,
                 {"memory on {} given, a device that the executable does not name",
                  DeviceText({static_cast<std::int32_t>(device.device_type), device.device_id, {}})});
}

// Empties a slot, or makes it ready for `mode`.
void Impl::ResetSlot(OutputHandle handle, OutputSlot* slot, OutputSlot::Mode mode) {
  OutputSlots& slots = outputs[handle.function];
  slots.bound -= slot->mode != OutputSlot::kUnbound ? 1 : 0;
  slots.bound += mode != OutputSlot::kUnbound ? 1 : 0;
  slot->mode = mode;
  slot->donated = false;
  slot->owner = Value();
  slot->storage = nullptr;
  slot->data = nullptr;
  slot->capacity = 0;
}

Status Impl::SetOutput(OutputHandle handle, const TensorView& view) {
  Result<OutputSlot*> found = SlotOf(handle);
  if (!found) return Forward(found);
  OutputSlot* slot = *found;
  const Function& function = rep.module().functions[handle.function];
  const TypeNode& type = function.result.nodes[rep.functions[handle.function].leaf_nodes[handle.leaf]];
  const DLTensor& dl = view.dl();
  if (view.read_only()) return Invalid(function, handle.leaf, "memory that is const cannot be written");
  if (type.kind == TypeKind::kTensor && !TensorFits(rep.module(), type, dl)) {
    return Invalid(function, handle.leaf, TensorMismatchText(rep.module(), type, dl));
  }
  if (type.kind == TypeKind::kClosure || type.kind == TypeKind::kStorage) {
    return Invalid(function, handle.leaf, "only tensors can be bound");
  }
  const std::optional<std::uint64_t> bytes =
      dl.ndim <= kMaxRank && IsValidDType(dl.dtype) ? TensorBytes(dl.dtype, view.shape()) : std::nullopt;
  if (!bytes)
    return Invalid(function, handle.leaf, {"{} has a wrong element type, rank or dimension", TensorText(dl)});
  if (Status ok = CheckDevice(handle, dl.device); !ok) return ok;
  ResetSlot(handle, slot, OutputSlot::kTensor);
  slot->tensor = view;
  slot->data = view.data();
  slot->capacity = *bytes;
  slot->device = dl.device;
  return {};
}

Status Impl::SetOutput(OutputHandle handle, const OutputCapacity& capacity) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  if (capacity.data == nullptr) {
    return Invalid(rep.module().functions[handle.function], handle.leaf, "no memory given");
  }
  if (Status ok = CheckDevice(handle, capacity.device); !ok) return ok;
  ResetSlot(handle, *slot, OutputSlot::kCapacity);
  (*slot)->data = capacity.data;
  (*slot)->capacity = capacity.bytes;
  (*slot)->device = capacity.device;
  return {};
}

Status Impl::SetOutput(OutputHandle handle, const OutputAllocator& allocator) {
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

Status Impl::Donate(InputHandle input, OutputHandle handle) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  const Function& function = rep.module().functions[handle.function];
  if (input.function != handle.function) {
    return Invalid(function, handle.leaf, "the donated input belongs to another function");
  }
  const FunctionPlan& plan = rep.plans[handle.function];
  for (std::uint32_t leaf = 0; leaf < plan.leaves.size(); ++leaf) {
    if (leaf == handle.leaf || !plan.leaves[leaf].returns_input[input.index]) continue;
    return Invalid(function, handle.leaf,
                   {"input {} cannot be donated, output {} may return it too",
                    function.inputs[input.index].name, function.output_names[leaf]});
  }
  ResetSlot(handle, *slot, OutputSlot::kCapacity);
  (*slot)->donated = true;
  (*slot)->donated_input = input.index;
  return {};
}

// Fills in what depends on the run's inputs and finds what stands in the way. Run again only after a change.
Status Impl::PrepareOutputs(std::uint32_t function_index, const RewireFFIAny* run_inputs) {
  OutputSlots& slots = outputs[function_index];
  const Function& function = rep.module().functions[function_index];
  const FunctionPlan& plan = rep.plans[function_index];
  if (!output_ranges.Resize(slots.leaves.size())) return NoMemory("outputs");
  std::uint32_t count = 0;
  for (std::uint32_t leaf = 0; leaf < slots.leaves.size(); ++leaf) {
    OutputSlot& slot = slots.leaves[leaf];
    slot.obstacle = OutputSlot::kNoObstacle;
    if (slot.mode == OutputSlot::kUnbound) continue;
    if (slot.donated) {
      const RewireFFIAny& input = run_inputs[slot.donated_input];
      if (input.type_index != kTensorKind || (TensorOf(input)->flags & TensorObject::kImmutable) != 0) {
        return Invalid(function, leaf,
                       {"the donated input {} is not a tensor that may be written",
                        function.inputs[slot.donated_input].name});
      }
      const DLTensor& dl = TensorOf(input)->tensor;
      slot.data = dl.data;
      slot.storage = TensorOf(input)->storage;
      slot.device = dl.device;
      slot.capacity = TensorBytes(dl.dtype, {dl.shape, static_cast<std::size_t>(dl.ndim)}).value_or(0);
      if (!plan.leaves[leaf].may_take_input[slot.donated_input]) slot.obstacle = OutputSlot::kDonationBarred;
    }
    if (slot.mode == OutputSlot::kAllocator) {  // each run asks anew: the last one's memory is the host's
      slot.data = nullptr;
      slot.capacity = 0;
      continue;
    }
    if (slot.mode == OutputSlot::kTensor) {
      if (!slot.tensor.IsContiguous()) slot.obstacle = OutputSlot::kStrided;
      output_ranges[count++] = {RangeOf(slot.tensor.dl()), leaf};
    } else {
      output_ranges[count++] = {RangeOf(slot.data, slot.capacity), leaf};
    }
    const std::uint64_t alignment = std::max<std::uint64_t>(
        rep.output_alignment, slot.mode == OutputSlot::kTensor
                                  ? ElementBytes({slot.tensor.dtype().code, slot.tensor.dtype().bits, 1})
                                  : 1);
    if (reinterpret_cast<std::uintptr_t>(slot.data) % alignment != 0) slot.obstacle = OutputSlot::kMisaligned;
  }
  output_ranges.Pop(count);
  SortByBegin({output_ranges.data(), count});
  const Span<const NamedRange> ranges(output_ranges.data(), count);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (!ranges[i - 1].range.Overlaps(ranges[i].range)) continue;
    return Invalid(
        function, ranges[i].index,
        {"the bound memory overlaps that of output {}", function.output_names[ranges[i - 1].index]});
  }
  for (const NamedRange& bound : ranges) {
    const NamedRange* constant = FindOverlap(rep.constant_ranges, bound.range);
    if (constant == nullptr) continue;
    const Constant& entry = rep.module().constants[constant->index];
    return Invalid(function, bound.index,
                   {"the bound memory overlaps {}{}",
                    entry.kind == ConstantKind::kParameter ? "parameter " : "constant ", entry.name});
  }
  for (const NamedRange& bound : ranges) {
    if (block == nullptr || slots.leaves[bound.index].donated) continue;
    if (!bound.range.Overlaps(RangeOf(block, block->bytes()))) continue;
    return Invalid(
        function, bound.index,
        {"the bound memory overlaps the {} that the VM runs in", arena ? "SharedArena" : "StaticMemory"});
  }
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    if (Status ok = CheckInputOverlaps(function_index, i, run_inputs[i]); !ok) return ok;
  }
  return {};
}

// Outputs over memory of an input, which may be a tree, are copied when the run ends.
Status Impl::CheckInputOverlaps(std::uint32_t function_index, std::uint32_t input,
                                const RewireFFIAny& value) {
  // Values of a tree that are looked at. A larger one is taken to overlap everything.
  constexpr std::uint32_t kMaxValues = 1 << 20;
  OutputSlots& slots = outputs[function_index];
  GrowingArray<RewireFFIAny>& open = leaf_values;
  open.Pop(0);
  if (!open.Push(value)) return NoMemory("looking through the inputs");
  for (std::uint32_t seen = 0; !open.empty(); ++seen) {
    if (seen == kMaxValues) {
      for (OutputSlot& slot : slots.leaves) slot.obstacle = OutputSlot::kOverlapsInput;
      return {};
    }
    const RewireFFIAny next = open.back();
    open.Pop(open.size() - 1);
    if (next.type_index == kAdtKind || next.type_index == kClosureKind) {
      for (std::uint32_t i = 0; i < TupleOf(next)->count; ++i) {
        if (!open.Push(TupleOf(next)->fields()[i])) return NoMemory("looking through the inputs");
      }
    }
    if (next.type_index != kTensorKind) continue;
    const MemoryRange range = RangeOf(TensorOf(next)->tensor);
    const Span<const NamedRange> ranges(output_ranges.data(), output_ranges.size());
    for (const NamedRange* bound = FindOverlap(ranges, range);
         bound != nullptr && bound != ranges.end() && bound->range.Overlaps(range); ++bound) {
      OutputSlot& slot = slots.leaves[bound->index];
      if (slot.donated && slot.donated_input == input) continue;
      slot.obstacle = OutputSlot::kOverlapsInput;
      if (Status ok = CheckReturnedInput(function_index, bound->index, input); !ok) return ok;
    }
  }
  return {};
}

// An output over an input is copied at the end; another output that returns that input must have been copied
// by then.
Status Impl::CheckReturnedInput(std::uint32_t function_index, std::uint32_t leaf, std::uint32_t input) {
  const Function& function = rep.module().functions[function_index];
  const Array<LeafPlan>& leaves = rep.plans[function_index].leaves;
  for (std::uint32_t other = 0; other < leaves.size(); ++other) {
    if (other == leaf || !leaves[other].returns_input[input] ||
        outputs[function_index].leaves[other].mode != OutputSlot::kUnbound) {
      continue;
    }
    return Invalid(function, leaf,
                   {"the bound memory overlaps input {}, which output {} may return; bind that output too, "
                    "or use other memory",
                    function.inputs[input].name, function.output_names[other]});
  }
  return {};
}

}  // namespace rewire
