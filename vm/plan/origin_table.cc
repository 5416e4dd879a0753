// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/origin_table.h"

#include <algorithm>
#include <utility>

namespace rewire {
namespace {

constexpr std::size_t kChunk = 4096;  // members

// Multiplies and folds; equal keys have equal hashes, and that is all that is asked.
std::size_t Mix(std::size_t hash, std::size_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

}  // namespace

void InternIndex::Grow() {
  Array<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
  std::swap(old, slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == kFree) continue;
    std::size_t i = slot.hash & mask;
    while (slots_[i].number != kFree) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

OriginTable::OriginTable(WorkMeter* meter) : meter_(*meter) {
  Intern({});
  Single({Origin::kMany, 0, 0});
}

OriginId OriginTable::Id(const Origin& origin) {
  meter_.Spend(1);
  const std::size_t hash = Mix(Mix(origin.kind, origin.pc), origin.index);
  const auto next = static_cast<OriginId>(origins_.size());
  const OriginId id = ids_.FindOrAdd(hash, next, [&](OriginId known) {
    const Origin& other = origins_[known];
    return other.kind == origin.kind && other.pc == origin.pc && other.index == origin.index;
  });
  return id == next ? Add(origin) : id;
}

OriginId OriginTable::Add(const Origin& origin) {
  meter_.Spend(1);
  origins_.push_back(origin);
  singles_.push_back(kNoOrigins);
  return static_cast<OriginId>(origins_.size() - 1);
}

OriginSet OriginTable::SetOf(OriginId id) {
  meter_.Spend(1);
  if (singles_[id] == kNoOrigins) {
    singles_[id] = static_cast<OriginSet>(sets_.size());
    sets_.push_back({Keep({&id, 1}), 1});
  }
  return singles_[id];
}

const OriginId* OriginTable::Keep(Span<const OriginId> members) {
  if (members.empty()) return nullptr;
  if (chunk_left_ < members.size()) {
    chunks_.push_back(std::unique_ptr<OriginId[]>(new OriginId[kChunk]));
    chunk_left_ = kChunk;
  }
  OriginId* kept = chunks_.back().get() + (kChunk - chunk_left_);
  std::copy(members.begin(), members.end(), kept);
  chunk_left_ -= members.size();
  return kept;
}

OriginSet OriginTable::Intern(Span<const OriginId> members) {
  if (members.size() == 1) return SetOf(members[0]);
  meter_.Spend(1 + members.size());
  std::size_t hash = members.size();
  for (const OriginId id : members) hash = Mix(hash, id);
  const auto next = static_cast<OriginSet>(sets_.size());
  const OriginSet set = set_ids_.FindOrAdd(hash, next, [&](OriginSet known) {
    return sets_[known].size() == members.size() &&
           std::equal(members.begin(), members.end(), sets_[known].begin());
  });
  if (set == next) sets_.push_back({Keep(members), members.size()});
  return set;
}

OriginSet OriginTable::Union(OriginSet a, OriginSet b) {
  if (a == b || b == kNoOrigins) return a;
  if (a == kNoOrigins) return b;
  if (a == kManySet || b == kManySet) return kManySet;
  const Span<const OriginId> left = sets_[a];
  const Span<const OriginId> right = sets_[b];
  meter_.Spend(left.size() + right.size());
  OriginId members[2 * kMostMembers];
  const OriginId* end = std::set_union(left.begin(), left.end(), right.begin(), right.end(), members);
  const auto count = static_cast<std::size_t>(end - members);
  if (count == left.size()) return a;
  if (count == right.size()) return b;
  if (count > kMostMembers) return kManySet;
  return Intern({members, count});
}

Span<const OriginSet> OriginTable::Fields(OriginId tuple) const {
  if (tuple >= fields_.size()) return {};
  return {fields_[tuple].data(), fields_[tuple].size()};
}

void OriginTable::AddField(OriginId tuple, std::uint32_t index, OriginSet set) {
  meter_.Spend(1);
  if (tuple >= fields_.size()) {
    const std::size_t room = std::max<std::size_t>(tuple + std::size_t{1}, 2 * fields_.size());
    fields_.resize(room);
    contents_.resize(room, kNoOrigins);
  }
  Array<OriginSet>& fields = fields_[tuple];
  while (fields.size() <= index) fields.push_back(kNoOrigins);
  const OriginSet merged = Union(fields[index], set);
  if (merged == fields[index]) return;
  fields[index] = merged;
  contents_[tuple] = Union(contents_[tuple], merged);
  if (tuple < read_.size() && read_[tuple]) grown_ = true;
}

void OriginTable::MarkRead(OriginId tuple) {
  if (tuple >= read_.size()) read_.resize(std::max<std::size_t>(tuple + std::size_t{1}, 2 * read_.size()));
  read_[tuple] = true;
}

OriginSet OriginTable::Reach(OriginSet set) {
  const Span<const OriginId> members = sets_[set];
  meter_.Spend(1 + members.size());
  const bool flat =
      std::ranges::none_of(members, [this](OriginId id) { return origins_[id].kind == Origin::kTuple; });
  if (flat) return set;  // most are
  // Ascending throughout; `todo` are those of them that have not been looked into.
  OriginId found[kMostMembers];
  std::size_t count = 0;
  Array<OriginId> todo(members.begin(), members.end());
  while (!todo.empty()) {
    const OriginId id = todo.back();
    todo.pop_back();
    if (id == kManyId) return kManySet;
    OriginId* place = std::lower_bound(found, found + count, id);
    if (place != found + count && *place == id) continue;
    if (count == kMostMembers) return kManySet;
    std::copy_backward(place, found + count, found + count + 1);
    *place = id;
    ++count;
    if (origins_[id].kind != Origin::kTuple) continue;
    MarkRead(id);
    const Span<const OriginId> inside = sets_[Contents(id)];
    meter_.Spend(1 + inside.size());
    todo.append(inside.begin(), inside.end());
  }
  return Intern({found, count});
}

}  // namespace rewire
