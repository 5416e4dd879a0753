// SPDX-License-Identifier: Apache-2.0
//
// A VM from its making to its end: its memory, limits and interruption.
#include "rewire/vm/run/machine.h"

#include <new>
#include <utility>

namespace rewire {

OwnedMachine Machine::Make(const Program& program, const Limits& limits) {
  MemoryAccount* account = MemoryAccount::Make(program.rep().allocator);
  return OwnedMachine(new Machine(program, {account, account, nullptr, {}}, limits));
}

OwnedMachine Machine::Make(const Program& program, const Limits& limits, const SharedArena& arena) {
  MemoryAccount* home = MemoryAccount::Make(program.rep().allocator);
  return OwnedMachine(
      new Machine(program, {arena.rep()->NewAccount(), home, arena.rep()->block, arena}, limits));
}

Result<OwnedMachine> Machine::Make(const Program& program, const Limits& limits, const StaticMemory& memory) {
  FixedBlock* block = FixedBlock::Make(memory.pointer, memory.size);
  const Allocator allocator = block != nullptr ? block->allocator() : Allocator();
  MemoryAccount* account = block != nullptr ? MemoryAccount::MakeWithin(allocator) : nullptr;
  void* place = account != nullptr ? allocator.allocate(block, sizeof(Machine), 64) : nullptr;
  if (place == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "the static memory of {} bytes is too small for a VM", memory.size);
  }
  return OwnedMachine(new (place) Machine(program, {account, account, block, {}}, limits));
}

void DeleteMachine::operator()(Machine* machine) const {
  const VmMemory memory = machine->memory;
  if (memory.bounded() && !memory.arena) {
    const Allocator allocator = memory.account->allocator();
    machine->~Machine();
    allocator.deallocate(allocator.context, machine, sizeof(Machine), 64);
  } else {
    delete machine;
  }
  memory.account->Close();
  if (memory.apart()) memory.home->Close();
}

Machine::Machine(const Program& linked, const VmMemory& own_memory, const Limits& own_limits)
    : program(linked.rep_, nullptr),
      rep(program.rep()),
      memory(own_memory),
      streams(rep.devices),
      heap(memory.account, rep.storage_fill, rep.output_alignment),
      limits(own_limits),
      run(memory.account),
      inputs(program, memory, &heap, &streams),
      outputs(program, memory, &run.blocks),
      work(&streams, &heap, memory.home),
      home_blocks(memory.home),
      moved(&home_blocks),
      recorder(this) {
  heap.set_streams(&streams);
  memory.set_limit(limits.bytes);
  memory.account->set_reclaim(
      [](void* machine) {
        static_cast<Machine*>(machine)->run.blocks.Free();
        static_cast<Machine*>(machine)->heap.FreeSpare();
      },
      this);
}

Machine::~Machine() {
  memory.account->set_reclaim(nullptr, nullptr);
  // Work that nobody has waited for may still use the caller's memory.
  if ((open_ends & kStarted) != 0) work.WaitForAll(WaitCause::kEnd);
  recorder.Drop();
  DropKernelState();
  inputs.DropAll();
  DropResult();
}

void Machine::DropKernelState() {
  run.ready = false;
  const AccountArray<KernelSlot> dropped = std::move(slots);
  for (const KernelSlot& slot : dropped) {
    if (slot.deleter != nullptr) slot.deleter(slot.state);
  }
}

void Machine::ReleaseArrays() {
  run.Release();
  outputs.ReleaseScratch();
}

// Between two runs: what nothing uses now, and only the next run might.
void Machine::FreeSpareMemory() {
  ReleaseArrays();
  run.blocks.Free();
  heap.FreeSpare();
}

void Machine::GiveBackRunMemory() {
  ReleaseArrays();
  run.blocks.Free();
  heap.FreeAll();
}

void Machine::SetLimits(const Limits& given) {
  limits = given;
  memory.set_limit(limits.bytes);
  if (!limited()) run.blocks.Keep(false);
  // The spare blocks for the next run were taken under the earlier limit.
  if (memory.bytes_held() > limits.bytes) FreeSpareMemory();
}

// Blocks that a device does not take back are an error of this call.
Status Machine::Trim() {
  DropResult();
  DropKernelState();
  GiveBackRunMemory();
  return streams.TakeFailure().status;
}

}  // namespace rewire
