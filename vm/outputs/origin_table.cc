// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vm/outputs/origins.h"

namespace rewire {

OriginTable::OriginTable() {
  sets_.emplace_back();
  set_ids_[{}] = 0;
}

OriginId OriginTable::Id(const Origin& origin) {
  const auto [entry, is_new] = ids_.emplace(origin, static_cast<OriginId>(origins_.size()));
  if (is_new) origins_.push_back(origin);
  return entry->second;
}

OriginSet OriginTable::Intern(std::vector<OriginId> members) {
  const auto [entry, is_new] = set_ids_.emplace(members, static_cast<OriginSet>(sets_.size()));
  if (is_new) sets_.push_back(std::move(members));
  return entry->second;
}

OriginSet OriginTable::Union(OriginSet a, OriginSet b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  std::vector<OriginId> members;
  std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                 std::back_inserter(members));
  return Intern(std::move(members));
}

OriginSet OriginTable::Without(OriginSet set, OriginId id) {
  if (!std::binary_search(sets_[set].begin(), sets_[set].end(), id)) return set;
  std::vector<OriginId> members = sets_[set];
  members.erase(std::find(members.begin(), members.end(), id));
  return Intern(std::move(members));
}

const std::vector<OriginSet>& OriginTable::Fields(OriginId tuple) const {
  static const std::vector<OriginSet> kNoFields;
  const auto found = fields_.find(tuple);
  return found == fields_.end() ? kNoFields : found->second;
}

bool OriginTable::AddField(OriginId tuple, std::uint32_t index, OriginSet set) {
  std::vector<OriginSet>& fields = fields_[tuple];
  if (fields.size() <= index) fields.resize(index + 1, 0);
  const OriginSet merged = Union(fields[index], set);
  if (merged == fields[index]) return false;
  fields_[tuple][index] = merged;
  return true;
}

OriginSet OriginTable::Reach(OriginSet set) {
  std::vector<OriginId> found;
  std::vector<OriginId> open = sets_[set];
  while (!open.empty()) {
    const OriginId id = open.back();
    open.pop_back();
    const auto place = std::lower_bound(found.begin(), found.end(), id);
    if (place != found.end() && *place == id) continue;
    found.insert(place, id);
    if (origins_[id].kind != Origin::kTuple) continue;
    for (const OriginSet field : Fields(id))
      open.insert(open.end(), sets_[field].begin(), sets_[field].end());
  }
  return Intern(std::move(found));
}

}  // namespace rewire
