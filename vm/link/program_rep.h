// SPDX-License-Identifier: Apache-2.0
// A ProgramRep is all that a Program holds. Immutable once Link has returned it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/link/equal_axes.h"
#include "rewire/vm/link/kernel_calls.h"
#include "rewire/vm/memory/cache_line.h"
#include "rewire/vm/plan/loop_blocks.h"
#include "rewire/vm/plan/output_plan.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/objects.h"

namespace rewire {

struct InitSharing;  // init_sharing.h

// Bytes that a kernel's tensor arguments must be aligned to: as its library declares, or else as the import
// does. 0 means any alignment.
inline std::uint32_t AlignmentOf(const PackedFunction& function, const KernelImport& import) {
  return function.alignment != 0 ? function.alignment : import.alignment;
}

// A resolved import. What the interpreter reads in every call comes first.
struct LinkedKernel {
  // Enables the interpreter's fast path: the import has neither `objects` nor also_written, and the registers
  // of a call are its arguments.
  bool plain = true;
  bool apart = false;                // its row requires that written arguments do not overlap read ones
  std::uint32_t in_place = 0;        // bit k: the one written argument may exactly cover argument k
  std::uint32_t alignment_mask = 0;  // low address bits that must be zero in every tensor argument
  PackedFunction function;
  const KernelImport* import = nullptr;
  KernelCalls calls;  // the calls that its row describes; known() if it has a row
};
static_assert(sizeof(LinkedKernel) <= 128, "found by a shift; what each call needs comes first");

struct LinkedFunction {
  // A frame of so many registers takes as long as a hundred instructions.
  static constexpr std::uint32_t kLongFrame = 256;

  const std::uint32_t* code = nullptr;
  std::uint32_t register_count = 0;
  std::uint32_t input_count = 0;
  std::uint32_t first_input = 0;    // among those of all functions
  bool prepares = false;            // there is more to do before it begins (Interpreter::PrepareFrame)
  Array<std::uint32_t> leaf_nodes;  // of the result's type: the node of each output
  Array<EqualAxes> equal_axes;      // of the inputs
};

// A Program shares its LinkedCode with the Programs that Rebind makes of it: everything except the constants.
struct LinkedCode {
  explicit LinkedCode(Executable linked) : executable(std::move(linked)) {}
  const Module& module() const { return executable.module(); }

  Executable executable;
  Array<LinkedKernel> kernels;
  Array<LinkedFunction> functions;
  Array<LinkedDevice> devices;
  Array<FunctionPlan> plans;  // by function: where outputs may be made
  Array<LoopBlocks> loops;    // by function: what a VM has at hand for its loops
  std::uint32_t output_alignment =
      1;                          // the strictest alignment that a kernel requires (AlignmentOf), in bytes
  std::uint32_t input_count = 0;  // of all functions together
  std::uint32_t max_args = 0;     // of any InvokePacked, before ADTs are flattened
  std::uint32_t entry = 0;
  std::shared_ptr<ThreadPool> threads;
  Allocator allocator;
  LogSink log;
  StorageFill storage_fill = StorageFill::kUndefined;
  ConstantCodecs codecs;
  LinkLimits limits;
  Limits init_limits;
  const InitSharing* init_sharing = nullptr;
  Array<std::uint32_t> init_constants;  // constants that `__init`, or functions that it calls, may load
};

// Starts on a cache line of its own, away from the reference count that std::make_shared puts before it.
// Making a VM writes that count, and every thread reads this data.
struct alignas(kCacheLine) ProgramRep {
  explicit ProgramRep(std::shared_ptr<const LinkedCode> linked);
  ~ProgramRep();
  ProgramRep(const ProgramRep&) = delete;
  ProgramRep& operator=(const ProgramRep&) = delete;

  const Module& module() const { return executable.module(); }

  std::shared_ptr<const LinkedCode> code;
  // A copy of the span in `code`, because the interpreter reads it often.
  Span<const LinkedKernel> kernels;
  Span<const LinkedFunction> functions;
  Span<const LinkedDevice> devices;
  Span<const FunctionPlan> plans;
  const Executable& executable;
  const Allocator& allocator;
  ThreadPool* threads;
  StorageFill storage_fill;
  std::uint32_t output_alignment;
  std::uint32_t input_count;
  std::uint32_t max_args;

  std::uint64_t number = 0;  // unique among all Programs of the process; identifies the Program of a closure
  Array<RewireFFIAny> constants;      // uncounted tensors, one strong reference each
  Array<NamedRange> constant_ranges;  // memory of constants and parameters, sorted

  std::uint64_t init_bytes = 0;     // that `__init` has taken, or would have
  std::shared_ptr<void> init_note;  // of InitSharing: what `__init` loads, and how others find this Program

  // The work that linking took, in units of LinkLimits.
  std::uint64_t link_work = 0;
  std::uint64_t link_bytes = 0;
};

// Program::Link with other rules of the output plan, for tests that show what each rule is for.
Result<Program> LinkUnderRules(const Executable& executable, LinkOptions options, const PlanRules& rules);

}  // namespace rewire
