// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/outputs/bound_outputs.h"

namespace rewire {
namespace {

Status NotRunYet() {
  return Fail(StatusCode::kInvalidArgument, "this output has not been bound in a successful run yet");
}

}  // namespace

Status CheckOutput(const Module& module, OutputHandle handle) {
  if (handle.function < module.functions.size() &&
      handle.leaf < module.functions[handle.function].output_names.size()) {
    return {};
  }
  return Fail(StatusCode::kInvalidArgument, "the output handle is not one of this Program's");
}

Result<OutputHandle> BoundOutputs::Resolve(const OutputRef& output) const {
  switch (output.kind_) {
    case OutputRef::kHandle:
      if (Status ok = CheckOutput(rep_.module(), output.handle_); !ok) return Forward(ok);
      return output.handle_;
    case OutputRef::kName:
      return program_.FindOutput(output.name_);
    case OutputRef::kIndex:
      break;
  }
  return program_.FindOutput(output.handle_.leaf);
}

Status BoundOutputs::Clear(OutputHandle handle) {
  Result<OutputSlot*> slot = SlotOf(handle);
  if (!slot) return Forward(slot);
  Reset(handle, *slot, OutputSlot::kUnbound);
  return {};
}

Status BoundOutputs::ClearAll(std::string_view function) {
  const Result<std::uint32_t> index = program_.FindFunction(function);
  if (!index) return Forward(index);
  const auto count = static_cast<std::uint32_t>(rep_.functions[*index].leaf_nodes.size());
  for (std::uint32_t leaf = 0; leaf < count; ++leaf) {
    if (Status ok = Clear({*index, leaf}); !ok) return ok;
  }
  return {};
}

// The slot of an output that was bound in the last successful run; null if there is none.
const OutputSlot* BoundOutputs::LastSlot(OutputHandle handle) const {
  if (slots_.empty() || slots_[handle.function].leaves.empty()) return nullptr;
  const OutputSlot& slot = slots_[handle.function].leaves[handle.leaf];
  return slot.rank < 0 ? nullptr : &slot;
}

Result<std::vector<std::int64_t>> BoundOutputs::ShapeOf(OutputHandle handle) const {
  const OutputSlot* slot = LastSlot(handle);
  if (slot == nullptr) return NotRunYet();
  return std::vector<std::int64_t>(slot->shape, slot->shape + slot->rank);
}

std::string BoundOutputs::ReasonOf(std::uint32_t function, std::uint32_t leaf) const {
  const OutputSlot& slot = slots_[function].leaves[leaf];
  const LeafPlan& plan = rep_.plans[function].leaves[leaf];
  if (slot.obstacles == OutputSlot::kElsewhere && plan.reason != CopyReason::kNone) {
    return CopyReasonText(plan.reason);
  }
  return ObstaclesText(slot.obstacles);
}

Result<OutputReport> BoundOutputs::Report(OutputHandle handle) const {
  const OutputSlot* slot = LastSlot(handle);
  if (slot == nullptr) return NotRunYet();
  OutputReport report;
  report.copied = slot->copied || slot->staged;
  if (slot->copied) {
    report.reason = ReasonOf(handle.function, handle.leaf);
  } else if (slot->staged) {
    report.reason = "the run goes on after the call, and the bound memory is not pinned";
  }
  return report;
}

}  // namespace rewire
