// SPDX-License-Identifier: Apache-2.0
//
// Checks memory for outputs when it enters a run: what it must not overlap, and what causes an output to be
// copied.
//
// All bound memory of a run is checked here, however it was bound. Tensors, capacities and donated inputs are
// checked before the run (PrepareOutputs), and an allocator's answers when they are given (AdmitAnswer). The
// same rules hold for all:
// - memory that overlaps another output, a constant, a parameter or the memory that the VM runs in is an
//   error;
// - an output over an input of the call is copied at the end.
#include <algorithm>

#include "rewire/vm/outputs/bound_outputs.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

// Fills in what depends on the run's inputs: the memory of donated inputs.
Status BoundOutputs::PrepareDonation(std::uint32_t function_index, std::uint32_t leaf,
                                     const RewireFFIAny* run_inputs) {
  OutputSlot& slot = slots_[function_index].leaves[leaf];
  const RewireFFIAny& input = run_inputs[slot.donated_input];
  if (input.type_index != kTensorKind || (TensorOf(input)->flags & TensorObject::kImmutable) != 0) {
    const Function& function = rep_.module().functions[function_index];
    return Fail(StatusCode::kInvalidArgument, "{}: the donated input {} is not a tensor that may be written",
                OutputText(function, leaf), function.inputs[slot.donated_input].name);
  }
  const DLTensor& dl = TensorOf(input)->tensor;
  slot.data = dl.data;
  slot.storage = TensorOf(input)->storage;
  slot.device = dl.device;
  slot.capacity = TensorBytes(dl.dtype, {dl.shape, static_cast<std::size_t>(dl.ndim)}).value_or(0);
  if (!rep_.plans[function_index].leaves[leaf].MayTakeInput(slot.donated_input)) {
    slot.obstacles |= OutputSlot::kDonationBarred;
  }
  return {};
}

// Before a run: finds the obstacles of each bound output.
Status BoundOutputs::BeginRun(std::uint32_t function_index, const RewireFFIAny* run_inputs) {
  OutputSlots& slots = slots_[function_index];
  const Function& function = rep_.module().functions[function_index];
  if (!ranges_.Resize(slots.leaves.size())) return memory_.NoMemory("outputs");
  std::uint32_t count = 0;
  for (std::uint32_t leaf = 0; leaf < slots.leaves.size(); ++leaf) {
    OutputSlot& slot = slots.leaves[leaf];
    slot.obstacles = 0;
    if (slot.mode == OutputSlot::kUnbound) continue;
    if (slot.mode == OutputSlot::kAllocator) {  // each run asks anew: the last one's memory is the host's
      slot.data = nullptr;
      slot.capacity = 0;
      continue;
    }
    if (slot.donated) {
      if (Status ok = PrepareDonation(function_index, leaf, run_inputs); !ok) return ok;
    }
    if (slot.strided) slot.obstacles |= OutputSlot::kStrided;
    const std::uint64_t alignment = std::max<std::uint64_t>(
        rep_.output_alignment,
        slot.mode == OutputSlot::kTensor ? ElementBytes({slot.form.dtype.code, slot.form.dtype.bits, 1}) : 1);
    if (reinterpret_cast<std::uintptr_t>(slot.data) % alignment != 0) {
      slot.obstacles |= OutputSlot::kMisaligned;
    }
    // Empty memory overlaps nothing, and in the list it would hide its neighbors from each other.
    if (const MemoryRange range = slot.extent(); !range.empty()) ranges_[count++] = {range, leaf};
  }
  ranges_.Pop(count);
  SortByBegin({ranges_.data(), count});
  const Span<const NamedRange> ranges(ranges_.data(), count);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (!ranges[i - 1].range.Overlaps(ranges[i].range)) continue;
    return Fail(StatusCode::kInvalidArgument, "{}: the bound memory overlaps that of output {}",
                OutputText(function, ranges[i].index), function.output_names[ranges[i - 1].index]);
  }
  for (const NamedRange& bound : ranges) {
    const bool donated = slots.leaves[bound.index].donated;
    if (Status ok = CheckFixedMemory(function_index, bound, donated, "the bound memory"); !ok) return ok;
  }
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    if (Status ok = CheckInputOverlaps(function_index, ranges, i, run_inputs[i]); !ok) return ok;
  }
  inputs_of_run_ = run_inputs;
  return {};
}

// Memory of the program and the VM in which no output may lie: constants, parameters, and the block that the
// VM runs in. A donated input inside that block is an exception.
Status BoundOutputs::CheckFixedMemory(std::uint32_t function_index, const NamedRange& memory, bool donated,
                                      const char* whose) const {
  const Function& function = rep_.module().functions[function_index];
  if (const NamedRange* constant = FindOverlap(rep_.constant_ranges, memory.range); constant != nullptr) {
    const Constant& entry = rep_.module().constants[constant->index];
    return Fail(StatusCode::kInvalidArgument, "{}: {} overlaps {}{}", OutputText(function, memory.index),
                whose, entry.kind == ConstantKind::kParameter ? "parameter " : "constant ", entry.name);
  }
  if (memory_.block == nullptr || donated ||
      !memory.range.Overlaps(RangeOf(memory_.block, memory_.block->bytes())))
    return {};
  return Fail(StatusCode::kInvalidArgument, "{}: {} overlaps the {} that the VM runs in",
              OutputText(function, memory.index), whose, memory_.arena ? "SharedArena" : "StaticMemory");
}

// Makes an output allocator's answer for `bytes` bytes the output's memory. The answer is checked like memory
// that was bound before the run. A failure says what is wrong with it.
Status BoundOutputs::AdmitAnswer(std::uint32_t function_index, std::uint32_t leaf, void* data,
                                 std::uint64_t bytes) {
  OutputSlots& slots = slots_[function_index];
  OutputSlot& slot = slots.leaves[leaf];
  const Function& function = rep_.module().functions[function_index];
  slot.data = data;
  slot.capacity = 0;
  MemoryRange range;
  if (!FindRange(data, bytes, &range)) {
    return Fail(StatusCode::kInvalidArgument, "{}: its allocator gave {} bytes beyond the address space",
                OutputText(function, leaf), bytes);
  }
  slot.capacity = bytes;
  if (reinterpret_cast<std::uintptr_t>(data) % rep_.output_alignment != 0) {
    slot.obstacles |= OutputSlot::kMisaligned;
  }
  for (std::uint32_t other = 0; other < slots.leaves.size(); ++other) {
    const OutputSlot& taken = slots.leaves[other];
    if (other == leaf || taken.mode == OutputSlot::kUnbound || !taken.extent().Overlaps(range)) continue;
    return Fail(StatusCode::kInvalidArgument, "{}: its allocator's memory overlaps that of output {}",
                OutputText(function, leaf), function.output_names[other]);
  }
  const NamedRange given{range, leaf};
  if (Status ok = CheckFixedMemory(function_index, given, false, "its allocator's memory"); !ok) return ok;
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    const Span<const NamedRange> ranges(&given, range.empty() ? 0 : 1);
    if (Status ok = CheckInputOverlaps(function_index, ranges, i, inputs_of_run_[i]); !ok) return ok;
  }
  return {};
}

// Outputs over memory of an input, which may be a tree, are copied when the run ends.
Status BoundOutputs::CheckInputOverlaps(std::uint32_t function_index, Span<const NamedRange> ranges,
                                        std::uint32_t input, const RewireFFIAny& value) {
  // The most values of a tree that are checked. A larger tree is assumed to overlap everything.
  constexpr std::uint32_t kMaxValues = 1 << 20;
  if (!IsTupleKind(value.type_index)) {
    return value.type_index == kTensorKind ? NoteInputOverlaps(function_index, ranges, input, TensorOf(value))
                                           : Status();
  }
  GrowingArray<RewireFFIAny>& open = walk_;
  open.Clear();
  if (!open.Push(value)) return memory_.NoMemory("looking through the inputs");
  for (std::uint32_t seen = 0; !open.empty(); ++seen) {
    if (seen == kMaxValues) {
      for (const NamedRange& bound : ranges) {
        slots_[function_index].leaves[bound.index].obstacles |= OutputSlot::kOverlapsInput;
        if (Status ok = CheckReturnedInput(function_index, bound.index, input); !ok) return ok;
      }
      return {};
    }
    const RewireFFIAny next = open.back();
    open.Pop(open.size() - 1);
    if (IsTupleKind(next.type_index)) {
      for (std::uint32_t i = 0; i < TupleOf(next)->count; ++i) {
        if (!open.Push(TupleOf(next)->fields()[i])) return memory_.NoMemory("looking through the inputs");
      }
    } else if (next.type_index == kTensorKind) {
      if (Status ok = NoteInputOverlaps(function_index, ranges, input, TensorOf(next)); !ok) return ok;
    }
  }
  return {};
}

Status BoundOutputs::NoteInputOverlaps(std::uint32_t function_index, Span<const NamedRange> ranges,
                                       std::uint32_t input, const TensorObject* tensor) {
  const MemoryRange range = RangeOf(tensor->tensor);
  for (const NamedRange* bound = FindOverlap(ranges, range);
       bound != nullptr && bound != ranges.end() && bound->range.Overlaps(range); ++bound) {
    OutputSlot& slot = slots_[function_index].leaves[bound->index];
    if (slot.donated && slot.donated_input == input) continue;
    slot.obstacles |= OutputSlot::kOverlapsInput;
    if (Status ok = CheckReturnedInput(function_index, bound->index, input); !ok) return ok;
  }
  return {};
}

// An output over an input is copied at the end. Another output that returns that input must be copied before
// it.
Status BoundOutputs::CheckReturnedInput(std::uint32_t function_index, std::uint32_t leaf,
                                        std::uint32_t input) {
  const Function& function = rep_.module().functions[function_index];
  const Array<LeafPlan>& leaves = rep_.plans[function_index].leaves;
  for (std::uint32_t other = 0; other < leaves.size(); ++other) {
    if (other == leaf || !leaves[other].ReturnsInput(input) ||
        slots_[function_index].leaves[other].mode != OutputSlot::kUnbound) {
      continue;
    }
    return Fail(StatusCode::kInvalidArgument,
                "{}: the bound memory overlaps input {}, which output {} may return; bind that output too, "
                "or use other memory",
                OutputText(function, leaf), function.inputs[input].name, function.output_names[other]);
  }
  return {};
}

}  // namespace rewire
