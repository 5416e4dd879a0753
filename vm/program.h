// SPDX-License-Identifier: Apache-2.0
// Program: an executable made ready to run: kernels resolved, parameters bound, constants placed, `__init`
// run.
//
// Immutable; a copy of the handle is a reference; any number of threads and VMs use one Program at once. It
// keeps alive what it was linked from: executable, kernel libraries, parameters.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/array.h"
#include "base/export.h"
#include "base/status.h"
#include "executable_format/constant_data.h"
#include "executable_format/executable.h"
#include "vm/allocator.h"
#include "vm/device/device_api.h"
#include "vm/limits.h"
#include "vm/loader/kernel_set.h"
#include "vm/memory_bound.h"
#include "vm/parameter_set.h"
#include "vm/thread_pool.h"
#include "vm/value.h"

namespace rewire {

// Names one input or one output of one function of one Program, resolved once. Outputs are the leaves of the
// result tree in pre-order.
struct InputHandle {
  std::uint32_t function = 0;
  std::uint32_t index = 0;
};
struct OutputHandle {
  std::uint32_t function = 0;
  std::uint32_t leaf = 0;
};

// Where messages go that are no errors (a trace, a warning of the loader). Called on the thread that has
// something to say; `message` is valid during the call. Null: nowhere.
struct LogSink {
  void* context = nullptr;
  void (*write)(void* context, const char* message, std::size_t size) = nullptr;
};

// What a tensor's memory holds before it is written: whatever lay there, zeroes (for untrusted programs,
// which could otherwise read what an earlier run left), or a pattern that shows reads of unwritten memory
// (for tests).
enum class StorageFill : std::uint8_t { kUndefined, kZero, kPoison };

struct LinkOptions {
  KernelSet kernels;
  // Look in Rewire's stock kernel libraries for imports named `rewire.` that `kernels` does not have.
  bool stock_kernels = true;
  // Where parameters come from: of several with one name the last counts. Each must match in dtype and shape.
  // A Program shares their memory; only what lies on another device than the executable wants is copied
  // there.
  Array<ParameterSet> parameters;
  // By default a parameter that the executable does not have is an error: a name is probably wrong. Set this
  // to link from a file that holds more than one model's.
  bool ignore_extra_parameters = false;
  std::shared_ptr<ThreadPool> threads;  // null: kernels run on the calling thread
  Allocator allocator = DefaultAllocator();
  LogSink log;
  ConstantCodecs codecs;  // of the host's own, besides zstd
  Limits init_limits;     // for `__init`
  StorageFill storage_fill = StorageFill::kUndefined;
  Array<const DeviceApi*> devices;  // besides the host; static storage
};

struct OutputBinding;  // outputs/output.h
struct OutputPlan;     // outputs/output.h
struct LinkedCode;     // program_rep.h
struct PlanRules;      // outputs/output_plan.h
struct ProgramRep;     // program_rep.h
class VmPool;          // vm_pool.h

class REWIRE_API Program {
 public:
  // Resolves, binds and prepares. All missing kernels are named in one error, all unbound, unknown and
  // mismatched parameters in another: kLinkFailed. Errors of `__init` come with its name in front.
  static Result<Program> Link(const Executable& executable, LinkOptions options = {});

#if defined(__cpp_exceptions)
  // Executable::Open and Link in one; throws Error.
  static Program Open(const std::string& path, LinkOptions options = {}) {
    Result<Executable> executable = Executable::Open(path);
    if (!executable) throw Error(executable.error());
    Result<Program> program = Link(*executable, std::move(options));
    if (!program) throw Error(program.error());
    return *std::move(program);
  }
#endif

  // A Program with other parameters that shares everything else with this one: code, kernels, output plans,
  // constants and the parameters that `parameters` does not name. Takes time by the number of constants, not
  // of instructions, and that of `__init` when a parameter that it may load is another one. Errors as Link.
  Result<Program> Rebind(Span<const ParameterSet> parameters) const;

  const Executable& executable() const;

  // kNotFound, with near names. An empty name is the entry: "main" or, without it, the first function.
  Result<std::uint32_t> FindFunction(std::string_view name) const;
  Result<InputHandle> FindInput(std::string_view name, std::string_view function = {}) const;
  Result<InputHandle> FindInput(std::uint32_t index, std::string_view function = {}) const;
  Result<OutputHandle> FindOutput(std::string_view name, std::string_view function = {}) const;
  Result<OutputHandle> FindOutput(std::uint32_t leaf, std::string_view function = {}) const;

  // How an output can be made in the caller's memory. kInvalidArgument: a handle of another Program's.
  Result<OutputPlan> TryOutputPlan(OutputHandle output) const;
  // The same as text: "rewired", or "copied: <reason>", and a line for each instruction that can make it.
  std::string ExplainOutput(OutputHandle output) const;

  // The most memory that a run of a function can need, found out without running it. In librewire_prepare.
  Result<MemoryBound> TryMemoryBound(std::string_view function = {},
                                     const MemoryBoundOptions& options = {}) const;

  // Runs a function once, from any thread, without a VM of the caller's: VMs are pooled behind the Program.
  // The outputs given are written; the result is returned as by VirtualMachine::TryInvoke.
  Result<Value> TryRun(std::string_view function, Span<const Value> inputs, const Limits& limits = {}) const;
  Status TryRun(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs,
                const Limits& limits = {}) const;

  const ProgramRep& rep() const { return *rep_; }
  const std::shared_ptr<const ProgramRep>& shared_rep() const { return rep_; }

 private:
  friend class VirtualMachine;  // keeps a Program without the pool, which keeps VMs
  friend Result<Program> LinkUnderRules(const Executable&, LinkOptions, const PlanRules&);
  Program(std::shared_ptr<const ProgramRep> rep, std::shared_ptr<VmPool> pool)
      : rep_(std::move(rep)), pool_(std::move(pool)) {}
  static Result<Program> Bind(std::shared_ptr<const LinkedCode> code, Span<const ParameterSet> parameters,
                              bool ignore_extra, const ProgramRep* donor);

  std::shared_ptr<const ProgramRep> rep_;
  std::shared_ptr<VmPool> pool_;
};

}  // namespace rewire
