// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory_bound.h"

#include <algorithm>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/module_size.h"
#include "rewire/executable_format/names/no_function.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/memory/fixed_block.h"
#include "rewire/vm/plan/output_plan.h"
#include "rewire/vm/prepare/bound_analysis.h"
#include "rewire/vm/program.h"
#include "rewire/vm/run/machine.h"

namespace rewire {
namespace {

// Bytes of an array that grows to `most` elements. All its sizes on the way are added up, because the memory
// that it leaves may not be reused. `first` elements are requested at once.
template <typename T>
std::uint64_t Grown(std::uint64_t first, std::uint64_t most) {
  if (most == 0) return 0;
  std::uint64_t capacity = GrowingArray<T>::CapacityFor(first);
  std::uint64_t sum = FixedBlock::Rounded(capacity * sizeof(T));
  while (capacity < most) {
    capacity *= 2;
    sum += FixedBlock::Rounded(capacity * sizeof(T));
  }
  return sum;
}

Result<Array<std::int64_t>> MaxSymbols(const Module& module, const MemoryBoundOptions& options) {
  Array<std::int64_t> most = module.symbol_limits;
  most.resize(module.symbols.size(), kNoLimit);
  for (const auto& [name, value] : options.max_dims) {
    const auto found = std::find(module.symbols.begin(), module.symbols.end(), name);
    if (found == module.symbols.end()) {
      return Fail(StatusCode::kInvalidArgument, "no signature has a dimension \"" + name + "\"" +
                                                    KnownNames("dimensions", name, module.symbols));
    }
    if (value < 0) {
      return Fail(StatusCode::kInvalidArgument,
                  "dimension \"" + name + "\" is at most " + std::to_string(value) + ", which is negative");
    }
    std::int64_t& limit = most[static_cast<std::size_t>(found - module.symbols.begin())];
    limit = limit == kNoLimit ? value : std::min(limit, value);
  }
  return most;
}

std::uint32_t EntryOf(const Module& module) {
  const std::size_t main = PositionOfFunction(module, "main");
  return main < module.functions.size() ? static_cast<std::uint32_t>(main) : 0;
}

WorkMeter::Budget BudgetOf(const Module& module, const MemoryBoundOptions& options) {
  WorkMeter::Budget budget;
  budget.stage = "following the program on all its paths";
  budget.units = options.work != 0 ? options.work : DefaultWork(ModuleSize(module));
  budget.units_option = "MemoryBoundOptions::work";
  budget.deadline = options.deadline;
  budget.deadline_option = "MemoryBoundOptions::deadline";
  return budget;
}

// Adds what an asynchronous run stages of a function's bound outputs (Interpreter::CopyStaged). Each has at
// most one copy under way, because another one to the same memory waits for it.
void AddStaged(const Function& function, const FunctionPlan& plan, Span<const std::int64_t> symbols,
               std::uint64_t alignment, MemoryBound* total) {
  std::uint32_t leaf = 0;
  for (const TypeNode& node : function.result.nodes) {
    if (node.kind == TypeKind::kAdt) continue;
    const std::string& name = function.output_names[leaf];
    const Array<OutputSite>& sites = plan.leaves[leaf++].sites;
    // A function that is called may copy.
    const bool copies = std::any_of(sites.begin(), sites.end(), [&](const OutputSite& site) {
      const Opcode made_by = OpcodeOf(function.code[site.pc]);
      return site.reason == CopyReason::kNone &&
             (made_by == Opcode::kDeviceCopy || made_by == Opcode::kInvoke);
    });
    if (!copies) continue;
    Array<std::int64_t> dims;
    bool known = node.kind == TypeKind::kTensor && node.rank != kUnknownRank;
    for (const Dim dim : node.dims) {
      dims.push_back(IsSymbol(dim) ? symbols[SymbolOf(dim)] : dim);
      known = known && dims.back() >= 0;
    }
    if (!known) {
      total->unbounded = "output " + name + " is staged, and its signature does not bound its size";
      return;
    }
    const std::uint64_t bytes =
        std::min(TensorBytes(node.dtype, dims).value_or(BlockPool::kMaxBlock), BlockPool::kMaxBlock);
    if (bytes < kLeastPinned) continue;
    const std::uint64_t block = ObjectHeap::DeviceBlockBytes(bytes, alignment, true);
    const std::uint64_t objects = BlockPool::BlockBytes(TensorObject::Bytes(kPooledRank)) +
                                  BlockPool::BlockBytes(sizeof(StorageObject));
    total->pinned += block;
    total->objects += objects;
    total->bytes += block + objects;
  }
}

// Adds up what was found.
MemoryBound Total(const Module& module, const FunctionPlan& plan, const bounds::BoundAnalysis& analysis,
                  const bounds::Findings& found, std::uint32_t index, bool bound, bool pinning_known) {
  const Function& function = module.functions[index];
  MemoryBound total;
  total.unbounded = found.unbounded;
  for (const std::uint32_t kernel : found.undeclared) {
    const std::string& name = module.kernels[kernel].name;
    Array<std::string>& names = total.undeclared_workspace;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (!total.bounded()) return total;
  total.storage = found.storage;
  total.device = found.device;
  total.objects = found.objects;
  total.workspace = found.workspace;

  Array<std::uint64_t> on_devices;  // by the table
  on_devices.resize(module.devices.size(), 0);
  std::uint64_t pool = 0;
  bool large = false;
  for (bounds::BlockClass i = 0; i < found.peak.size(); ++i) {
    const bounds::BoundAnalysis::Class& block = analysis.ClassAt(i);
    (block.pinned        ? total.pinned
     : block.on_device() ? on_devices[block.device]
                         : pool) += block.bytes * found.peak[i];
    large = large ||
            (!block.pinned && !block.on_device() && found.peak[i] > 0 && block.bytes > BlockPool::kMaxSmall);
  }
  std::uint64_t on_device = 0;
  for (std::uint32_t i = 0; i < on_devices.size(); ++i) {
    if (on_devices[i] == 0) continue;
    on_device += on_devices[i];
    total.devices.push_back({i, on_devices[i]});
  }
  // Memory of a fixed size has no pinned blocks: there, and where a device turns out to pin nothing, the pool
  // has them, and a table for them.
  const std::uint64_t table = FixedBlock::Rounded(BlockPool::kTableBytes);
  const std::uint64_t pool_alone = pool + total.pinned + (large || total.pinned > 0 ? table : 0);
  pool = pinning_known ? pool + total.pinned + (large ? table : 0) : pool_alone;

  std::uint32_t max_args = 0;
  std::uint32_t all_inputs = 0;
  for (const Function& each : module.functions) {
    all_inputs += static_cast<std::uint32_t>(each.inputs.size());
    for (std::uint32_t pc = 0; pc < each.code.size(); pc += WordsOf(each.code[pc])) {
      if (OpcodeOf(each.code[pc]) != Opcode::kInvokePacked) continue;
      max_args = std::max(max_args, each.code[pc + WordOf(Opcode::kInvokePacked, "args")]);
    }
  }
  total.stack = Grown<RewireFFIAny>(function.register_count, found.registers) +
                Grown<Frame>(1, found.frames) + Grown<RewireFFIAny>(max_args, std::max(max_args, found.args));
  std::uint64_t arrays = Grown<RewireFFIAny>(1, found.temporaries) + Grown<Workspace>(1, found.workspaces);
  std::uint64_t kept = AccountArray<KernelSlot>::Bytes(static_cast<std::uint32_t>(module.kernels.size()));
  if (found.copies) kept += DeviceWork::ArrayBytes();
  if (!function.inputs.empty()) kept += AccountArray<RewireFFIAny>::Bytes(all_inputs);
  if (bound) {
    const auto leaves = static_cast<std::uint32_t>(function.output_names.size());
    arrays += Grown<OutputSlot*>(leaves, found.destinations) +
              Grown<RewireFFIAny>(function.result.nodes.size(), function.result.nodes.size()) +
              Grown<NamedRange>(leaves, leaves);
    kept += AccountArray<OutputSlots>::Bytes(static_cast<std::uint32_t>(module.functions.size())) +
            FixedBlock::Rounded(AccountArray<OutputSlot>::Bytes(leaves));
  }
  std::uint64_t headers = 0;
  std::uint64_t returned_headers = 0;  // which the last result may keep when the input is set again
  for (std::size_t i = 0; i < found.input_headers.size(); ++i) {
    headers += found.input_headers[i];
    const bool returned = std::any_of(plan.leaves.begin(), plan.leaves.end(), [i](const LeafPlan& leaf) {
      return leaf.ReturnsInput(static_cast<std::uint32_t>(i));
    });
    if (returned) returned_headers += found.input_headers[i];
  }
  arrays += total.stack;
  total.arena_bytes = pool_alone + arrays - headers;  // inputs stay between runs: they are not in an arena
  total.bytes = pool + arrays + kept + on_device;
  total.static_bytes = pool_alone + arrays + kept + returned_headers + FixedBlock::OwnBytes() +
                       FixedBlock::Rounded(sizeof(MemoryAccount)) + FixedBlock::Rounded(sizeof(Machine));
  return total;
}

Result<MemoryBound> Bound(const Executable& executable, Span<const FunctionPlan> plans,
                          Array<const PackedFunction*> kernels, Span<const LinkedDevice> devices,
                          Span<const LoopBlocks> loops, StorageFill fill, std::string_view name,
                          const MemoryBoundOptions& options) {
  const Module& module = executable.module();
  std::uint32_t alignment = 1;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelImport& import = module.kernels[i];
    alignment =
        std::max(alignment, kernels[i] == nullptr ? import.alignment : AlignmentOf(*kernels[i], import));
  }
  std::uint32_t index = EntryOf(module);
  if (!name.empty()) {
    const std::optional<std::uint32_t> found = executable.FindFunction(name);
    if (!found) return Forward(NoFunction(module, name));
    index = *found;
  } else if (module.functions.empty()) {
    return Fail(StatusCode::kNotFound, "the executable has no functions");
  }
  Result<Array<std::int64_t>> symbols = MaxSymbols(module, options);
  if (!symbols) return Forward(symbols);
  Array<bool> pins;  // by device of the table; all, if the devices are not known
  for (std::size_t i = 0; i < module.devices.size(); ++i) {
    pins.push_back(devices.empty() ? module.devices[i].type != kDLCPU
                                   : devices[i].api != nullptr && PinsFor(*devices[i].api, kLeastPinned));
  }
  WorkMeter meter(BudgetOf(module, options));
  if (Status early = meter.Check(); !early) return Forward(early);
  Array<LoopBlocks> found_loops;  // of an executable that is not linked
  if (loops.empty()) {
    found_loops = FindLoopBlocks(module, fill, alignment, &meter);
    loops = found_loops;
  }
  bounds::BoundAnalysis analysis(module, plans, std::move(kernels),
                                 {options.outputs_bound, fill, alignment, pins, *symbols, loops}, &meter);
  const bounds::Findings& found = analysis.Run(index);
  if (const Status spent = meter.Failure(); !spent && spent.error().code() == StatusCode::kDeadlineExceeded)
    return Forward(spent);
  MemoryBound bound =
      Total(module, plans[index], analysis, found, index, options.outputs_bound, !devices.empty());
  const bool any_pins = std::find(pins.begin(), pins.end(), true) != pins.end();
  if (bound.bounded() && options.asynchronous && options.outputs_bound && any_pins) {
    AddStaged(module.functions[index], plans[index], *symbols, std::max<std::uint32_t>(alignment, 64),
              &bound);
  }
  bound.work = meter.spent();
  return bound;
}

}  // namespace

Result<MemoryBound> BoundMemory(const Executable& executable, KernelSet* kernels, std::string_view function,
                                const MemoryBoundOptions& options) {
  Array<PackedFunction> resolved;
  resolved.reserve(executable.module().kernels.size());
  for (const KernelImport& import : executable.module().kernels) {
    PackedFunction& kernel = resolved.emplace_back();  // stays empty if there is no kernel of that name
    if (kernels == nullptr) continue;
    if (Result<PackedFunction> found = kernels->Resolve(import); found) kernel = *std::move(found);
  }
  Array<const PackedFunction*> pointers;
  pointers.reserve(resolved.size());
  for (const PackedFunction& kernel : resolved) pointers.push_back(kernel ? &kernel : nullptr);
  return Bound(executable, PlanOutputs(executable.module()), std::move(pointers), {}, {},
               StorageFill::kUndefined, function, options);
}

Result<MemoryBound> Program::TryMemoryBound(std::string_view function,
                                            const MemoryBoundOptions& options) const {
  Array<const PackedFunction*> kernels;
  for (const LinkedKernel& kernel : rep_->kernels) kernels.push_back(&kernel.function);
  return Bound(rep_->executable, rep_->plans, std::move(kernels), rep_->devices, rep_->code->loops,
               rep_->storage_fill, function, options);
}

}  // namespace rewire
