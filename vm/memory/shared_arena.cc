// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/shared_arena.h"

#include <new>
#include <string>
#include <utility>

#include "rewire/vm/memory/arena_rep.h"

namespace rewire {
namespace {

constexpr std::uint64_t kRepBytes =
    (sizeof(SharedArena::Rep) + FixedBlock::kAlignment - 1) / FixedBlock::kAlignment * FixedBlock::kAlignment;

}  // namespace

void SharedArena::Rep::Unref() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Allocator allocator = upstream;
  allocator.deallocate(allocator.context, this, bytes, FixedBlock::kAlignment);
}

MemoryAccount* SharedArena::Rep::NewAccount() {
  Ref();
  Allocator allocator = block->allocator();
  // The account's release gets the allocator's context, from which the arena's place follows.
  return MemoryAccount::Make(allocator, [](void* context) {
    reinterpret_cast<Rep*>(static_cast<char*>(context) - kRepBytes)->Unref();
  });
}

Result<SharedArena> SharedArena::TryMake(std::uint64_t bytes, const Allocator& allocator) {
  const std::uint64_t room = FixedBlock::Rounded(bytes);
  const std::uint64_t own = kRepBytes + FixedBlock::OwnBytes();
  if (bytes == 0 || room < bytes || room > ~std::uint64_t{0} - own) {
    return Fail(StatusCode::kInvalidArgument, "a SharedArena of {} bytes asked for", bytes);
  }
  void* memory = allocator.allocate(allocator.context, own + room, FixedBlock::kAlignment);
  if (memory == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "the allocator has no {} bytes for a SharedArena", own + room);
  }
  Rep* rep = new (memory) Rep;
  rep->upstream = allocator;
  rep->bytes = own + room;
  rep->block = FixedBlock::Make(static_cast<char*>(memory) + kRepBytes, own + room - kRepBytes);
  return SharedArena(rep);
}

SharedArena::SharedArena(const SharedArena& other) : rep_(other.rep_) {
  if (rep_ != nullptr) rep_->Ref();
}

SharedArena& SharedArena::operator=(SharedArena other) noexcept {
  std::swap(rep_, other.rep_);
  return *this;
}

SharedArena::~SharedArena() {
  if (rep_ != nullptr) rep_->Unref();
}

std::uint64_t SharedArena::size() const { return rep_ == nullptr ? 0 : rep_->block->room(); }

bool SharedArena::in_use() const { return rep_ != nullptr && rep_->in_use.load(std::memory_order_relaxed); }

}  // namespace rewire
