// SPDX-License-Identifier: Apache-2.0
//
// A VM from its making to its end: its memory, limits and interruption.
#include "rewire/vm/run/vm_impl.h"

#include <new>
#include <utility>

namespace rewire {

Status VmImpl::NoMemory(const char* what) const {
  if (account->over_limit() || home->over_limit()) {
    return Fail(StatusCode::kMemoryLimit, "no memory for {} within the VM's byte limit", what);
  }
  return Fail(StatusCode::kOutOfMemory, "the allocator has no memory for {}", what);
}

OwnedVm VmImpl::Make(const Program& program, const Limits& limits) {
  MemoryAccount* account = MemoryAccount::Make(program.rep().allocator);
  return OwnedVm(new VmImpl(program, account, account, limits));
}

OwnedVm VmImpl::Make(const Program& program, const Limits& limits, const SharedArena& arena) {
  MemoryAccount* home = MemoryAccount::Make(program.rep().allocator);
  OwnedVm vm(new VmImpl(program, arena.rep()->NewAccount(), home, limits));
  vm->arena = arena;
  vm->block = arena.rep()->block;
  return vm;
}

Result<OwnedVm> VmImpl::Make(const Program& program, const Limits& limits, const StaticMemory& memory) {
  FixedBlock* block = FixedBlock::Make(memory.pointer, memory.size);
  const Allocator allocator = block != nullptr ? block->allocator() : Allocator();
  MemoryAccount* account = block != nullptr ? MemoryAccount::MakeWithin(allocator) : nullptr;
  void* place = account != nullptr ? allocator.allocate(block, sizeof(VmImpl), 64) : nullptr;
  if (place == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "the static memory of {} bytes is too small for a VM", memory.size);
  }
  OwnedVm vm(new (place) VmImpl(program, account, account, limits));
  vm->block = block;
  return vm;
}

void DeleteVm::operator()(VmImpl* vm) const {
  MemoryAccount* account = vm->account;
  MemoryAccount* home = vm->home;
  if (vm->bounded() && !vm->arena) {
    const Allocator allocator = account->allocator();
    vm->~VmImpl();
    allocator.deallocate(allocator.context, vm, sizeof(VmImpl), 64);
  } else {
    delete vm;
  }
  account->Close();
  if (home != account) home->Close();
}

VmImpl::VmImpl(const Program& linked, MemoryAccount* run_account, MemoryAccount* home_account,
               const Limits& own_limits)
    : program(linked.rep_, nullptr),
      rep(program.rep()),
      account(run_account),
      home(home_account),
      streams(rep.devices),
      heap(run_account, rep.storage_fill, rep.output_alignment),
      limits(own_limits),
      blocks(run_account),
      home_blocks(home_account),
      stack(&blocks),
      frames(&blocks),
      args(&blocks),
      temporaries(&blocks),
      workspaces(&blocks),
      destinations(&blocks),
      leaf_values(&blocks),
      output_ranges(&blocks),
      input_walk(&blocks),
      moved(&home_blocks),
      work(&streams, &heap, home_account) {
  heap.set_streams(&streams);
  account->set_limit(limits.bytes);
  home->set_limit(limits.bytes);
  account->set_reclaim(
      [](void* vm) {
        static_cast<VmImpl*>(vm)->blocks.Free();
        static_cast<VmImpl*>(vm)->heap.FreeSpare();
      },
      this);
}

VmImpl::~VmImpl() {
  account->set_reclaim(nullptr, nullptr);
  // Work that nobody has waited for may still use the caller's memory.
  if ((open_ends & kStarted) != 0) work.WaitForAll(WaitCause::kEnd);
  DropRecording();
  DropKernelState();
  for (const RewireFFIAny& input : inputs) heap.Unpin(input);
  DropResult();
}

void VmImpl::DropKernelState() {
  has_arrays = false;
  const AccountArray<KernelSlot> dropped = std::move(slots);
  for (const KernelSlot& slot : dropped) {
    if (slot.deleter != nullptr) slot.deleter(slot.state);
  }
}

void VmImpl::ReleaseArrays() {
  has_arrays = false;
  stack.Release();
  frames.Release();
  args.Release();
  temporaries.Release();
  workspaces.Release();
  destinations.Release();
  leaf_values.Release();
  output_ranges.Release();
  input_walk.Release();
}

// Between two runs: what nothing uses now, and only the next run might.
void VmImpl::FreeSpareMemory() {
  ReleaseArrays();
  blocks.Free();
  heap.FreeSpare();
}

void VmImpl::GiveBackRunMemory() {
  ReleaseArrays();
  blocks.Free();
  heap.FreeAll();
}

void VmImpl::SetLimits(const Limits& given) {
  limits = given;
  account->set_limit(limits.bytes);
  home->set_limit(limits.bytes);
  if (!limited()) blocks.Keep(false);
  // The spare blocks for the next run were taken under the earlier limit.
  if (bytes_held() > limits.bytes) FreeSpareMemory();
}

void VmImpl::Cancel() {
  const std::uint64_t run = runs.current();
  if (!RunCounter::IsRun(run)) return;
  runs.Cancel(run);
  interrupts.fetch_or(kCancelRequested, std::memory_order_release);
}

Status VmImpl::CheckInterrupted() const {
  if (cancelled()) return Fail(StatusCode::kCancelled, "the run was cancelled");
  const bool timed = (interrupts.load(std::memory_order_relaxed) & kHasDeadline) != 0;
  if (!timed || std::chrono::steady_clock::now() < deadline) return {};
  return Fail(StatusCode::kDeadlineExceeded, "the deadline passed");
}

void VmImpl::SetDeadline(std::chrono::steady_clock::time_point when) {
  deadline = when;
  if (when == std::chrono::steady_clock::time_point::max()) {
    interrupts.fetch_and(~kHasDeadline, std::memory_order_relaxed);
  } else {
    interrupts.fetch_or(kHasDeadline, std::memory_order_relaxed);
  }
}

// Blocks that a device does not take back are an error of this call.
Status VmImpl::Trim() {
  DropResult();
  DropKernelState();
  GiveBackRunMemory();
  return streams.TakeFailure().status;
}

}  // namespace rewire
