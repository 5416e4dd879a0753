// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/program.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/analysis/reached.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/module_size.h"
#include "rewire/executable_format/names/no_function.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/vm/link/error_list.h"
#include "rewire/vm/link/link_budget.h"
#include "rewire/vm/link/link_device_code.h"
#include "rewire/vm/link/link_devices.h"
#include "rewire/vm/link/link_kernels.h"
#include "rewire/vm/link/log_link.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire {

ProgramRep::ProgramRep(std::shared_ptr<const LinkedCode> linked)
    : code(std::move(linked)),
      kernels(code->kernels),
      functions(code->functions),
      devices(code->devices),
      plans(code->plans),
      executable(code->executable),
      allocator(code->allocator),
      threads(code->threads.get()),
      storage_fill(code->storage_fill),
      output_alignment(code->output_alignment),
      input_count(code->input_count),
      max_args(code->max_args) {
  static std::atomic<std::uint64_t> next{1};
  number = next.fetch_add(1, std::memory_order_relaxed);
}

ProgramRep::~ProgramRep() {
  for (const RewireFFIAny& constant : constants) {
    if (IsObjectKind(constant.type_index)) DropStrong(ObjectOf(constant));
  }
}

namespace {

// Resolving an import costs so many units: it is looked up by name in a few sources.
constexpr std::uint64_t kResolveWork = 64;

Status LinkKernels(LinkedCode* code, LinkOptions* options, WorkMeter* meter) {
  ErrorList errors;
  DeviceCodeLinker device_code(*code, meter);
  bool tried[names::kNoLibrary + 1] = {};
  tried[names::kNoLibrary] = true;
  for (const KernelImport& import : code->module().kernels) {
    if (errors.full()) break;
    const std::uint64_t work = kResolveWork + import.attributes.size() + code->module().device_kernels.size();
    if (Status ok = meter->Charge(work); !ok) return ok;
    const DeviceKernelEntry* own = device_code.Find(import.name);
    Result<PackedFunction> function =
        own != nullptr ? device_code.Make(*own, import) : options->kernels.Resolve(import);
    const std::size_t stock = names::StockLibraryOf(import.name);
    if (!function && function.error().code() == StatusCode::kNotFound && options->stock_kernels &&
        !tried[stock]) {
      tried[stock] = true;
      if (Status ok = options->kernels.AddLibrary(names::kStockLibraries[stock].file); !ok) {
        errors.Add(ok.error().message());
      }
      function = options->kernels.Resolve(import);
    }
    if (!function) {
      errors.Add(function.error().message());
      continue;
    }
    if (const RewireKernelRow* row = function->row;
        row != nullptr && row->arguments != nullptr && row->argument_count > REWIRE_MAX_ROW_ARGUMENTS) {
      errors.Add({"{}: its row declares {} arguments, at most {} may be; declare several as a list",
                  import.name, row->argument_count, REWIRE_MAX_ROW_ARGUMENTS});
      continue;
    }
    LinkedKernel kernel;
    kernel.plain = (import.flags & kKernelObjects) == 0 && import.also_written.empty();
    const std::uint32_t alignment = AlignmentOf(*function, import);
    kernel.alignment_mask = alignment == 0 ? 0 : alignment - 1;
    code->output_alignment = std::max(code->output_alignment, alignment);
    kernel.import = &import;
    kernel.calls = KernelCalls(function->row, import);
    kernel.apart = kernel.calls.known() && kernel.calls.Outputs().most != 0;
    kernel.in_place = kernel.calls.InPlace();
    kernel.function = *std::move(function);
    code->kernels.push_back(std::move(kernel));
  }
  return errors.ToStatus("kernels could not be resolved:");
}

void LinkFunctions(LinkedCode* code) {
  const Module& module = code->module();
  for (const Function& function : module.functions) {
    const auto inputs = static_cast<std::uint32_t>(function.inputs.size());
    code->functions.push_back({function.code.data(), function.register_count, inputs, code->input_count,
                               function.register_count >= LinkedFunction::kLongFrame, Leaves(function.result),
                               FindEqualAxes(function)});
    code->input_count += inputs;
    for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      if (OpcodeOf(function.code[pc]) != Opcode::kInvokePacked) continue;
      const std::uint32_t args = function.code[pc + WordOf(Opcode::kInvokePacked, "args")];
      code->max_args = std::max(code->max_args, args);
    }
  }
  const std::size_t main = PositionOfFunction(module, "main");
  if (main < module.functions.size()) code->entry = static_cast<std::uint32_t>(main);
}

// Half of the remaining work. Planning that runs out of it plans fewer outputs, and linking goes on.
[[gnu::cold]] WorkMeter::Budget HalfOf(const WorkMeter& meter) {
  WorkMeter::Budget budget = meter.budget();
  budget.units = meter.left() / 2;
  return budget;
}

// Counts what of such a half was used.
[[gnu::cold]] Status ChargeHalf(WorkMeter* meter, const WorkMeter& half) {
  if (Status ok = meter->Charge(std::min(half.spent(), half.budget().units)); !ok) return ok;
  return meter->Check();
}

// Without a plan, outputs are copied.
[[gnu::cold]] Status LinkPlans(LinkedCode* code, const PlanRules& rules, WorkMeter* meter) {
  WorkMeter planning(HalfOf(*meter));
  code->plans = PlanOutputs(code->module(), rules, &planning);
  return ChargeHalf(meter, planning);
}

// Without blocks at hand, the first turns of a loop allocate them.
[[gnu::cold]] Status LinkLoops(LinkedCode* code, WorkMeter* meter) {
  WorkMeter following(HalfOf(*meter));
  code->loops = FindLoopBlocks(code->module(), code->storage_fill, code->output_alignment, &following);
  for (std::uint32_t i = 0; i < code->loops.size(); ++i) {
    if (!code->loops[i].empty()) code->functions[i].prepares = true;
  }
  return ChargeHalf(meter, following);
}

void FindInitConstants(LinkedCode* code) {
  const Module& module = code->module();
  const std::optional<std::uint32_t> init = code->executable.FindFunction(kInitFunction);
  if (!init) return;
  Array<std::uint8_t> loaded(module.constants.size());
  const Array<std::uint8_t> reached = FunctionsReached(module, *init);
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    const Array<std::uint32_t>& words = module.functions[i].code;
    for (std::uint32_t pc = 0; reached[i] && pc < words.size(); pc += WordsOf(words[pc])) {
      if (OpcodeOf(words[pc]) == Opcode::kLoadConst)
        loaded[words[pc + WordOf(Opcode::kLoadConst, "constant")]] = true;
    }
  }
  for (std::uint32_t i = 0; i < loaded.size(); ++i) {
    if (loaded[i]) code->init_constants.push_back(i);
  }
}

Array<std::string> NamesOf(const Array<NamedType>& inputs) {
  Array<std::string> names;
  names.reserve(inputs.size());
  for (const NamedType& input : inputs) names.push_back(input.name);
  return names;
}

// The errors that a function has no input or output of a name or at a position. `what` is their plural.
Status NoName(const Function& function, std::string_view what, std::string_view name,
              const Array<std::string>& names) {
  return Fail(StatusCode::kNotFound, "function {} has no {} named \"{}\"{}", function.name,
              what.substr(0, what.size() - 1), name, KnownNames(what, name, names));
}

Status NoPosition(const Function& function, std::string_view what, std::uint32_t position,
                  std::size_t count) {
  return Fail(StatusCode::kNotFound, "function {} has {} {}, number {} asked for", function.name, count, what,
              position);
}

}  // namespace

Result<Program> Program::Link(const Executable& executable, LinkOptions options) {
  return LinkUnderRules(executable, std::move(options), {});
}

Result<Program> LinkUnderRules(const Executable& executable, LinkOptions options, const PlanRules& rules) {
  auto code = std::make_shared<LinkedCode>(executable);
  code->threads = options.threads != nullptr ? options.threads : ThreadPool::Serial();
  code->allocator = options.allocator;
  code->log = options.log;
  code->storage_fill = options.storage_fill;
  code->codecs = std::move(options.codecs);
  code->limits = options.limits;
  code->init_limits = options.init_limits;
  code->init_sharing = options.init_sharing;
  WorkMeter meter(LinkBudget(code->module(), options.parameters, options.limits));
  if (Status ok = AllowDeviceCode(code->module(), options); !ok) return Forward(ok);
  if (Status ok = LinkDevices(code.get(), options, &meter); !ok) return Forward(ok);
  if (Status ok = LinkKernels(code.get(), &options, &meter); !ok) return Forward(ok);
  // Walks over the code: kernel calls, functions, what `__init` loads.
  if (Status ok = meter.Charge(ModuleSize(code->module()) / 4); !ok) return Forward(ok);
  if (Status ok = CheckKernelRows(code.get()); !ok) return Forward(ok);
  LogLink(*code, options.kernels);
  LinkFunctions(code.get());
  FindInitConstants(code.get());
  if (Status ok = LinkPlans(code.get(), rules, &meter); !ok) return Forward(ok);
  if (Status ok = LinkLoops(code.get(), &meter); !ok) return Forward(ok);
  return Program::Bind(std::move(code), options.parameters, options.ignore_extra_parameters, nullptr, &meter);
}

Result<Program> Program::Rebind(Span<const ParameterSet> parameters) const {
  // The deadline was that of linking.
  LinkLimits limits = rep_->code->limits;
  limits.deadline = WorkMeter::Clock::time_point::max();
  WorkMeter meter(LinkBudget(rep_->module(), parameters, limits));
  return Bind(rep_->code, parameters, false, rep_.get(), &meter);
}

const Executable& Program::executable() const { return rep_->executable; }

Result<std::uint32_t> Program::FindFunction(std::string_view name) const {
  const Module& module = rep_->module();
  if (module.functions.empty()) return Fail(StatusCode::kNotFound, "the executable has no functions");
  if (name.empty()) return rep_->code->entry;
  const std::size_t found = PositionOfFunction(module, name);
  if (found < module.functions.size()) return static_cast<std::uint32_t>(found);
  return NoFunction(module, name);
}

Result<InputHandle> Program::FindInput(std::string_view name, std::string_view function) const {
  const Result<std::uint32_t> index = FindFunction(function);
  if (!index) return Forward(index);
  const Function& target = rep_->module().functions[*index];
  // Compared in place: names are looked up with every call of hosts that do not keep handles.
  for (std::uint32_t i = 0; i < target.inputs.size(); ++i) {
    if (target.inputs[i].name == name) return InputHandle{*index, i};
  }
  return NoName(target, "inputs", name, NamesOf(target.inputs));
}

Result<InputHandle> Program::FindInput(std::uint32_t index, std::string_view function) const {
  const Result<std::uint32_t> target = FindFunction(function);
  if (!target) return Forward(target);
  const Function& found = rep_->module().functions[*target];
  if (index < found.inputs.size()) return InputHandle{*target, index};
  return NoPosition(found, "inputs", index, found.inputs.size());
}

Result<OutputHandle> Program::FindOutput(std::string_view name, std::string_view function) const {
  const Result<std::uint32_t> index = FindFunction(function);
  if (!index) return Forward(index);
  const Function& target = rep_->module().functions[*index];
  for (std::uint32_t i = 0; i < target.output_names.size(); ++i) {
    if (target.output_names[i] == name) return OutputHandle{*index, i};
  }
  return NoName(target, "outputs", name, target.output_names);
}

Result<OutputHandle> Program::FindOutput(std::uint32_t leaf, std::string_view function) const {
  const Result<std::uint32_t> index = FindFunction(function);
  if (!index) return Forward(index);
  const Function& target = rep_->module().functions[*index];
  if (leaf < target.output_names.size()) return OutputHandle{*index, leaf};
  return NoPosition(target, "outputs", leaf, target.output_names.size());
}

}  // namespace rewire
