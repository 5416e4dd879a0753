// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/program.h>.
//
// Program: an executable that is ready to run. Its kernels are resolved, parameters bound, constants placed,
// and its function `__init` has run.
//
// A Program is immutable. Copying the handle adds a reference. Any number of threads and VMs may use one
// Program at once. It keeps the executable, kernel libraries and parameters alive that it was linked from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/allocator.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/thread_pool.h"
#include "rewire/vm/value.h"

namespace rewire {

// Identifies one input or one output of one function of one Program, resolved once. Outputs are the leaves of
// the result tree, in pre-order.
struct InputHandle {
  std::uint32_t function = 0;
  std::uint32_t index = 0;
};
struct OutputHandle {
  std::uint32_t function = 0;
  std::uint32_t leaf = 0;
};

// Receives messages that are no errors: when a program is linked, from where its kernels come, which devices
// it uses, and why REWIRE_DEVICE_CACHE is not used. log_to_spdlog.h makes a sink of a logger of spdlog.
//
// Called on the thread that has the message. `message` is valid during the call. The function may call
// whatever a kernel may call (virtual_machine.h). Null: messages are dropped.
struct LogSink {
  void* context = nullptr;
  void (*write)(void* context, const char* message, std::size_t size) = nullptr;
};

// A tensor's memory holds this before it is written. kUndefined: whatever was there. kZero: zeroes, for
// untrusted programs, which could otherwise read data of an earlier run. kPoison: a pattern that makes reads
// of unwritten memory visible, for tests.
enum class StorageFill : std::uint8_t { kUndefined, kZero, kPoison };

struct InitSharing;  // link/init_sharing.h

// For LinkOptions::init_sharing: all Programs of this process that are linked with it share what `__init`
// computes of equal weights. In librewire_prepare.
REWIRE_API const InitSharing* ShareInitResults();

struct LinkOptions {
  KernelSet kernels;
  // Searches Rewire's stock kernel libraries for imports named `rewire.*` that `kernels` does not have.
  bool stock_kernels = true;
  // Parameters come from these sets. If several have a name, the last one counts. Each parameter must match
  // in dtype and shape.
  //
  // A Program shares their memory. A parameter is copied only if the executable wants it on another device.
  Array<ParameterSet> parameters;
  // By default a parameter that the executable does not have is an error, because it is probably a misspelt
  // name. Set this to link from a file that holds the parameters of several models.
  bool ignore_extra_parameters = false;
  std::shared_ptr<ThreadPool> threads;  // null: kernels run on the calling thread only
  Allocator allocator = DefaultAllocator();
  LogSink log;
  ConstantCodecs codecs;  // the host's decoders, in addition to zstd
  LinkLimits limits;      // for linking as a whole
  Limits init_limits;     // for the run of `__init`, in addition to `limits`
  // ShareInitResults(): a Program shares what `__init` has computed for another one that is alive, if both
  // have the same `__init`, equal weights and the same allocator. Weights are compared in full, by content.
  // The rows of all kernels of `__init` must say that they are pure. Null: `__init` runs.
  const InitSharing* init_sharing = nullptr;
  StorageFill storage_fill = StorageFill::kUndefined;
  Array<const DeviceApi*> devices;  // in addition to the host; static storage
  // Opens Rewire's own library for a device that the executable names and `devices` does not have.
  bool stock_devices = true;
  // Runs device code that the executable itself holds. It is native code: nothing checks what it does. Set
  // this only for files whose origin you trust. Otherwise such a file is not linked (kLinkFailed).
  bool trust_device_code = false;
};

struct OutputBinding;  // output.h
struct OutputPlan;     // output.h
struct LinkedCode;     // program_rep.h
struct PlanRules;      // plan/output_plan.h
struct ProgramRep;     // program_rep.h
struct Machine;        // run/machine.h
class VmPool;          // vm_pool.h
class WorkMeter;       // base/work_meter.h

class REWIRE_API Program {
 public:
  // Links an executable: resolves kernels, binds parameters, runs `__init`.
  //
  // Errors: kLinkFailed names all missing kernels, or all unbound, unknown and mismatched parameters (the
  // first 64 of each). Errors of `__init` begin with its name. kStepLimit, kMemoryLimit and kDeadlineExceeded
  // mean that linking exceeded LinkOptions::limits.
  static Result<Program> Link(const Executable& executable, LinkOptions options = {});

  // Executable::Open and Link in one call.
  static Result<Program> TryOpen(const std::string& path, LinkOptions options = {});
#if defined(__cpp_exceptions)
  // The same; throws Error.
  static Program Open(const std::string& path, LinkOptions options = {}) {
    Result<Program> program = TryOpen(path, std::move(options));
    if (!program) throw Error(program.error());
    return *std::move(program);
  }
#endif

  // Moving copies, too: there is no empty Program.
  Program(const Program&) = default;
  Program& operator=(const Program&) = default;

  // Makes a Program with other parameters. Everything else is shared with this one: code, kernels, output
  // plans, constants, and the parameters that `parameters` does not name.
  //
  // The time depends on the number of constants, not on the number of instructions. `__init` runs again only
  // if a parameter that it may load has changed. Errors as Link. The limits of linking apply again, except
  // the deadline.
  Result<Program> Rebind(Span<const ParameterSet> parameters) const;

  const Executable& executable() const;

  // Look up functions, inputs and outputs. Errors: kNotFound, with similar names. An empty function name
  // means the entry: "main", or without it the first function.
  Result<std::uint32_t> FindFunction(std::string_view name) const;
  Result<InputHandle> FindInput(std::string_view name, std::string_view function = {}) const;
  Result<InputHandle> FindInput(std::uint32_t index, std::string_view function = {}) const;
  Result<OutputHandle> FindOutput(std::string_view name, std::string_view function = {}) const;
  Result<OutputHandle> FindOutput(std::uint32_t leaf, std::string_view function = {}) const;

  // Returns how an output can be made in the caller's memory. Errors: kInvalidArgument for a handle of
  // another Program.
  Result<OutputPlan> TryOutputPlan(OutputHandle output) const;
  // The same as text: "rewired" or "copied: <reason>", and a line for each instruction that can make the
  // output.
  std::string ExplainOutput(OutputHandle output) const;

  // Computes the most memory that a run of a function can need, without running it. In librewire_prepare.
  Result<MemoryBound> TryMemoryBound(std::string_view function = {},
                                     const MemoryBoundOptions& options = {}) const;

  // Runs a function once, from any thread. The caller needs no VM, because the Program keeps a pool of VMs.
  // The second form writes the given outputs. The result is as from VirtualMachine::TryInvoke.
  Result<Value> TryRun(std::string_view function, Span<const Value> inputs, const Limits& limits = {}) const;
  Status TryRun(std::string_view function, Span<const Value> inputs, Span<const OutputBinding> outputs,
                const Limits& limits = {}) const;

  const ProgramRep& rep() const { return *rep_; }
  const std::shared_ptr<const ProgramRep>& shared_rep() const { return rep_; }

 private:
  friend struct Machine;  // keeps a Program without the pool, because the pool keeps VMs
  friend Result<Program> LinkUnderRules(const Executable&, LinkOptions, const PlanRules&);
  Program(std::shared_ptr<const ProgramRep> rep, std::shared_ptr<VmPool> pool)
      : rep_(std::move(rep)), pool_(std::move(pool)) {}
  static Result<Program> Bind(std::shared_ptr<const LinkedCode> code, Span<const ParameterSet> parameters,
                              bool ignore_extra, const ProgramRep* donor, WorkMeter* meter);

  std::shared_ptr<const ProgramRep> rep_;
  std::shared_ptr<VmPool> pool_;
};

}  // namespace rewire
