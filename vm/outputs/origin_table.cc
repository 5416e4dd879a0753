// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "base/array.h"
#include "vm/outputs/origins.h"

namespace rewire {

namespace {

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

OriginTable::OriginTable() { Intern({}); }

OriginId OriginTable::Id(const Origin& origin) {
  const std::size_t hash = Mix(Mix(origin.kind, origin.pc), origin.index);
  const auto next = static_cast<OriginId>(origins_.size());
  const OriginId id = ids_.FindOrAdd(hash, next, [&](OriginId known) {
    const Origin& other = origins_[known];
    return other.kind == origin.kind && other.pc == origin.pc && other.index == origin.index;
  });
  if (id == next) origins_.push_back(origin);
  return id;
}

OriginSet OriginTable::Intern(Array<OriginId> members) {
  std::size_t hash = members.size();
  for (const OriginId id : members) hash = Mix(hash, id);
  const auto next = static_cast<OriginSet>(sets_.size());
  const OriginSet set =
      set_ids_.FindOrAdd(hash, next, [&](OriginSet known) { return sets_[known] == members; });
  if (set == next) sets_.push_back(std::move(members));
  return set;
}

OriginSet OriginTable::Union(OriginSet a, OriginSet b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (std::includes(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end())) return a;
  Array<OriginId> members;
  members.reserve(sets_[a].size() + sets_[b].size());
  std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                 std::back_inserter(members));
  return Intern(std::move(members));
}

OriginSet OriginTable::Without(OriginSet set, OriginId id) {
  if (!std::binary_search(sets_[set].begin(), sets_[set].end(), id)) return set;
  Array<OriginId> members = sets_[set];
  members.erase(std::find(members.begin(), members.end(), id));
  return Intern(std::move(members));
}

const Array<OriginSet>& OriginTable::Fields(OriginId tuple) const {
  static const Array<OriginSet> kNoFields;
  return tuple < fields_.size() ? fields_[tuple] : kNoFields;
}

bool OriginTable::AddField(OriginId tuple, std::uint32_t index, OriginSet set) {
  if (tuple >= fields_.size()) fields_.resize(tuple + std::size_t{1});
  Array<OriginSet>& fields = fields_[tuple];
  if (fields.size() <= index) fields.resize(index + std::size_t{1}, 0);
  const OriginSet merged = Union(fields[index], set);
  if (merged == fields[index]) return false;
  fields[index] = merged;
  return true;
}

OriginSet OriginTable::Reach(OriginSet set) {
  const bool flat = std::none_of(sets_[set].begin(), sets_[set].end(),
                                 [this](OriginId id) { return origins_[id].kind == Origin::kTuple; });
  if (flat) return set;  // most are
  Array<OriginId> found;
  Array<OriginId> open = sets_[set];
  while (!open.empty()) {
    const OriginId id = open.back();
    open.pop_back();
    const auto place = std::lower_bound(found.begin(), found.end(), id);
    if (place != found.end() && *place == id) continue;
    found.insert(place, id);
    if (origins_[id].kind != Origin::kTuple) continue;
    for (const OriginSet field : Fields(id)) open.append(sets_[field].begin(), sets_[field].end());
  }
  return Intern(std::move(found));
}

}  // namespace rewire
