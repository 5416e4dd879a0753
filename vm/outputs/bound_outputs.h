// SPDX-License-Identifier: Apache-2.0
//
// BoundOutputs: the memory that a host has bound for the outputs of one VM's functions.
//
// A bound output has an OutputSlot. Binding checks what can be known at once: form, device, address space
// (output_binding.cc). Each run checks what depends on it: that the memory overlaps nothing that the run
// needs (output_memory.cc). The interpreter makes or copies the outputs and notes in the slots what became of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/memory/growing_array.h"
#include "rewire/vm/memory/vm_memory.h"
#include "rewire/vm/output.h"
#include "rewire/vm/outputs/output_slot.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value/memory_range.h"

namespace rewire {

class BoundOutputs {
 public:
  // All outlive this. `blocks`: where the arrays of a run have their memory from.
  BoundOutputs(const Program& program, const VmMemory& memory, SpareBlocks* blocks)
      : program_(program), rep_(program.rep()), memory_(memory), ranges_(blocks), walk_(blocks) {}

  // VirtualMachine has these under TrySetOutput, TryDonate, TryClearOutput, TryOutputShape and
  // TryOutputReport.
  Result<OutputHandle> Resolve(const OutputRef& output) const;
  Status Set(const OutputRef& output, const TensorView& view);
  Status Set(OutputHandle handle, const TensorView& view);
  Status Set(OutputHandle handle, const Tensor& tensor);
  Status Set(OutputHandle handle, const OutputCapacity& capacity);
  Status Set(OutputHandle handle, const OutputAllocator& allocator);
  [[gnu::cold]] Status Donate(InputHandle input, OutputHandle handle);
  Status Clear(OutputHandle handle);
  Status ClearAll(std::string_view function);
  Result<std::vector<std::int64_t>> ShapeOf(OutputHandle handle) const;
  Result<OutputReport> Report(OutputHandle handle) const;

  bool require_zero_copy = false;

  // A call's own bindings, in place of the lasting ones, which come back when this ends.
  class ForCall {
   public:
    explicit ForCall(BoundOutputs* outputs) : outputs_(*outputs) { std::swap(kept_, outputs_.slots_); }
    ~ForCall() { std::swap(kept_, outputs_.slots_); }
    ForCall(const ForCall&) = delete;
    ForCall& operator=(const ForCall&) = delete;

   private:
    BoundOutputs& outputs_;
    AccountArray<OutputSlots> kept_;
  };
  // One binding of a call of `function`.
  Status SetForCall(std::uint32_t function, const OutputBinding& binding);

  // Whether nothing was ever bound, and whether an output of the function is.
  bool empty() const { return slots_.empty(); }
  bool IsBound(std::uint32_t function) const { return !slots_.empty() && slots_[function].bound > 0; }
  // The slots of a function; nothing must be empty.
  OutputSlots& Of(std::uint32_t function) { return slots_[function]; }
  // Why the last run copied a bound output: the run's own obstacle, or else the plan's reason.
  std::string ReasonOf(std::uint32_t function, std::uint32_t leaf) const;

  // Before a run with these inputs: finds the obstacles of each bound output.
  Status BeginRun(std::uint32_t function, const RewireFFIAny* inputs);
  void EndRun() { inputs_of_run_ = nullptr; }
  // During it: makes an output allocator's answer for `bytes` bytes the output's memory. The answer is
  // checked like memory that was bound before the run. A failure says what is wrong with it.
  Status AdmitAnswer(std::uint32_t function, std::uint32_t leaf, void* data, std::uint64_t bytes);
  // Between runs: gives back what only a run needs.
  void ReleaseScratch() {
    ranges_.Release();
    walk_.Release();
  }

 private:
  Result<OutputSlot*> SlotOf(OutputHandle handle);
  const OutputSlot* LastSlot(OutputHandle handle) const;
  Status CheckDevice(OutputHandle handle, DLDevice device) const;
  bool Move(OutputHandle handle, const TensorView& view);
  void Reset(OutputHandle handle, OutputSlot* slot, OutputSlot::Mode mode);
  Status PrepareDonation(std::uint32_t function, std::uint32_t leaf, const RewireFFIAny* inputs);
  Status CheckFixedMemory(std::uint32_t function, const NamedRange& memory, bool donated,
                          const char* whose) const;
  Status CheckInputOverlaps(std::uint32_t function, Span<const NamedRange> ranges, std::uint32_t input,
                            const RewireFFIAny& value);
  Status NoteInputOverlaps(std::uint32_t function, Span<const NamedRange> ranges, std::uint32_t input,
                           const TensorObject* tensor);
  Status CheckReturnedInput(std::uint32_t function, std::uint32_t leaf, std::uint32_t input);

  const Program& program_;
  const ProgramRep& rep_;
  const VmMemory& memory_;
  AccountArray<OutputSlots> slots_;              // by function, made when first bound
  const RewireFFIAny* inputs_of_run_ = nullptr;  // set during a run with bound outputs
  GrowingArray<NamedRange> ranges_;              // scratch of BeginRun
  GrowingArray<RewireFFIAny> walk_;              // scratch of CheckInputOverlaps
};

// Checks that the handle belongs to this module. Errors: kInvalidArgument.
Status CheckOutput(const Module& module, OutputHandle handle);

// A name for messages: "function main, output 0 (y)".
std::string OutputText(const Function& function, std::uint32_t leaf);

}  // namespace rewire
