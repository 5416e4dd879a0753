// SPDX-License-Identifier: Apache-2.0
// What a Program holds. Immutable once Link has returned it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/array.h"
#include "executable_format/executable.h"
#include "vm/cache_line.h"
#include "vm/linked_device.h"
#include "vm/objects.h"
#include "vm/outputs/memory_range.h"
#include "vm/outputs/output_plan.h"
#include "vm/program.h"

namespace rewire {

// An import, resolved. `call` and `handle` stand first: the interpreter reads them with every call.
struct LinkedKernel {
  RewirePackedFunction call = nullptr;
  void* handle = nullptr;
  bool plain = true;                 // neither objects nor also_written: the interpreter's fast path
  std::uint32_t alignment_mask = 0;  // low address bits that must be zero in every tensor argument
  const KernelImport* import = nullptr;
  PackedFunction function;  // keeps `handle` alive, knows where errors stand
};

struct LinkedFunction {
  const std::uint32_t* code = nullptr;
  std::uint32_t register_count = 0;
  std::uint32_t input_count = 0;
  std::uint32_t first_input = 0;    // among those of all functions
  Array<std::uint32_t> leaf_nodes;  // of the result's type: the node of each output
};

// What a Program shares with those that Rebind makes of it: everything but the constants.
struct LinkedCode {
  explicit LinkedCode(Executable linked) : executable(std::move(linked)) {}
  const Module& module() const { return executable.module(); }

  Executable executable;
  Array<LinkedKernel> kernels;
  Array<LinkedFunction> functions;
  Array<LinkedDevice> devices;
  Array<FunctionPlan> plans;           // where outputs may be made, by function
  std::uint32_t output_alignment = 1;  // the strictest that a kernel import asks, bytes
  std::uint32_t input_count = 0;       // of all functions together
  std::uint32_t max_args = 0;          // of any InvokePacked, before ADTs are flattened
  std::uint32_t entry = 0;
  std::shared_ptr<ThreadPool> threads;
  Allocator allocator;
  LogSink log;
  StorageFill storage_fill = StorageFill::kUndefined;
  ConstantCodecs codecs;
  Limits init_limits;
  Array<std::uint32_t> init_constants;  // that `__init`, or what it calls, may load
};

// Apart from the reference count that std::make_shared puts before it: making a VM counts, and would take
// what every thread reads from their caches.
struct alignas(kCacheLine) ProgramRep {
  explicit ProgramRep(std::shared_ptr<const LinkedCode> linked);
  ~ProgramRep();
  ProgramRep(const ProgramRep&) = delete;
  ProgramRep& operator=(const ProgramRep&) = delete;

  const Module& module() const { return executable.module(); }

  std::shared_ptr<const LinkedCode> code;
  // Of `code`, one step nearer: the interpreter reads them.
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

  std::uint64_t number = 0;           // of all Programs of the process: tells whose a closure is
  Array<RewireFFIAny> constants;      // uncounted tensors, one strong reference each
  Array<NamedRange> constant_ranges;  // memory of constants and parameters, sorted
};

// That the handle is of this module; kInvalidArgument.
Status CheckOutput(const Module& module, OutputHandle handle);

// Program::Link under other rules of the output plan, for tests that show what each rule is for.
Result<Program> LinkUnderRules(const Executable& executable, LinkOptions options, const PlanRules& rules);

}  // namespace rewire
