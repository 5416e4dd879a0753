// SPDX-License-Identifier: Apache-2.0
//
// From linked code to a Program: constants get their memory, and `__init` runs.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/link/init_sharing.h"
#include "rewire/vm/link/link_constants.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/program.h"
#include "rewire/vm/run/machine.h"
#include "rewire/vm/run/vm_pool.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

// InitLimits are the limits of `__init`: its own, as far as the meter has so much left.
Limits InitLimits(const Limits& given, const WorkMeter& meter) {
  Limits limits = given;
  limits.steps = std::min(limits.steps, meter.left());
  limits.bytes = std::min(limits.bytes, meter.bytes_left());
  return limits;
}

// Its run ended at what linking may take, and not at its own limits.
bool EndedByMeter(const Status& failed, const Limits& given, const Limits& used) {
  return (failed.code() == StatusCode::kStepLimit && used.steps < given.steps) ||
         (failed.code() == StatusCode::kMemoryLimit && used.bytes < given.bytes);
}

// True if `__init` may load nothing that is not the donor's, too. Both have the same code.
bool LoadsSame(const ProgramRep& rep, const ProgramRep& donor) {
  for (const std::uint32_t i : rep.code->init_constants) {
    const DLTensor &own = TensorOf(rep.constants[i])->tensor, &donors = TensorOf(donor.constants[i])->tensor;
    if (own.data != donors.data || !SameForm(own, donors)) return false;
  }
  return true;
}

// Replaces results of `__init`, in the order of the computed constants, by equals that other Programs have.
Status ShareResults(const ProgramRep& rep, Array<Tensor>* results) {
  std::size_t field = 0;
  for (const Constant& constant : rep.module().constants) {
    if (constant.kind != ConstantKind::kComputed) continue;
    Result<Tensor> shared = ShareComputedTensor(rep, constant, (*results)[field]);
    if (!shared) return Forward(shared);
    (*results)[field++] = *std::move(shared);
  }
  return {};
}

// Runs `__init` with its results in `memory`, and stores them in the computed constants.
Status Compute(const Program& program, ProgramRep* rep, std::uint32_t init, const Limits& limits,
               InitMemory memory, WorkMeter* meter) {
  const OwnedMachine vm = Machine::Make(program, limits);
  vm->interrupts.SetDeadline(meter->budget().deadline);
  for (std::uint32_t leaf = 0; leaf < memory.results.size(); ++leaf) {
    if (!memory.results[leaf]) continue;
    if (Status ok = vm->outputs.Set(OutputHandle{init, leaf}, memory.results[leaf]); !ok) return ok;
  }
  if (Status ok = vm->Invoke(init); !ok) return ok;
  rep->init_bytes = vm->memory.bytes_held() + memory.bytes;
  if (Status ok = meter->ChargeBytes(rep->init_bytes); !ok) return ok;
  Array<Tensor> results;
  for (const Constant& constant : rep->module().constants) {
    if (constant.kind != ConstantKind::kComputed) continue;
    results.push_back(vm->SharedResult().field(static_cast<std::uint32_t>(results.size())).tensor());
  }
  if (Status ok = ShareResults(*rep, &results); !ok) return ok;
  if (memory.bytes > 0 && rep->code->init_sharing->move(*rep, &memory, &results)) {
    if (Status ok = ShareResults(*rep, &results); !ok) return ok;
  }
  std::size_t field = 0;
  for (std::size_t i = 0; i < rep->constants.size(); ++i) {
    const Constant& constant = rep->module().constants[i];
    if (constant.kind != ConstantKind::kComputed) continue;
    const Result<RewireFFIAny> placed = PlaceComputed(*rep, constant, results[field++], meter);
    if (!placed) return Forward(placed);
    rep->constants[i] = *placed;
  }
  return {};
}

// Runs `__init`, if there is one, and stores its results in the computed constants. If a donor has the same
// code, and all that `__init` may load in the same memory, its computed constants are used instead. So are
// those of any Program that InitSharing finds. `__init` may use what the meter has left.
Status RunInit(const Program& program, ProgramRep* rep, const ProgramRep* donor, WorkMeter* meter) {
  const std::optional<std::uint32_t> init = rep->executable.FindFunction(kInitFunction);
  if (!init) return {};
  if (donor != nullptr && !LoadsSame(*rep, *donor)) donor = nullptr;
  const InitSharing* const sharing = rep->code->init_sharing;
  if (sharing != nullptr && sharing->take(rep, donor, meter)) return meter->ChargeBytes(rep->init_bytes);
  if (donor != nullptr) {
    ShareComputed(rep, *donor);
    return {};
  }
  const Limits limits = InitLimits(rep->code->init_limits, *meter);
  const auto run = [&](InitMemory memory) {
    Limits others = limits;
    if (limits.bytes != Limits().bytes) others.bytes -= memory.bytes;
    return Compute(program, rep, *init, others, std::move(memory), meter);
  };
  InitMemory memory = sharing != nullptr ? sharing->memory(*rep, *init, limits.bytes) : InitMemory{};
  const bool in_block = memory.bytes > 0;
  Status ran = run(std::move(memory));
  // If memory is scarce, each result takes its own.
  if (in_block && ran.code() == StatusCode::kMemoryLimit) ran = run({});
  if (ran || !EndedByMeter(ran, rep->code->init_limits, limits)) return ran;
  const bool steps = ran.code() == StatusCode::kStepLimit;
  return Forward(ran, {"linking may take {} {} ({})", steps ? meter->budget().units : meter->budget().bytes,
                       steps ? "units of work" : "bytes",
                       steps ? meter->budget().units_option : meter->budget().bytes_option});
}

}  // namespace

Result<Program> Program::Bind(std::shared_ptr<const LinkedCode> code, Span<const ParameterSet> parameters,
                              bool ignore_extra, const ProgramRep* donor, WorkMeter* meter) {
  auto rep = std::make_shared<ProgramRep>(std::move(code));
  if (Status ok = LinkConstants(rep.get(), parameters, ignore_extra, donor, meter); !ok) return Forward(ok);
  Program program(rep, std::make_shared<VmPool>());
  if (Status ok = RunInit(program, rep.get(), donor, meter); !ok) return Forward(ok);
  rep->link_work = meter->spent();
  rep->link_bytes = meter->bytes();
  FindConstantRanges(rep.get());
  if (rep->init_note != nullptr) rep->code->init_sharing->offer(rep);
  return program;
}

}  // namespace rewire
