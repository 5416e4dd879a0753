// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/kernel_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/sort.h"

namespace rewire {

KernelTableIndex::KernelTableIndex(const RewireKernelTable& table) : entries_(table.entries) {
  if (table.struct_size >= sizeof(RewireKernelTable)) rows_ = table.rows;
  work_ = RewireWorkOf(&table);
  sorted_.reserve(table.count);
  for (std::uint32_t i = 0; i < table.count; ++i) {
    const RewireKernelEntry& entry = table.entries[i];
    if (entry.name != nullptr && entry.function != nullptr) sorted_.push_back(&entry);
  }
  // The last of several entries of one name comes last.
  Sort(sorted_, [](const RewireKernelEntry* a, const RewireKernelEntry* b) {
    const int order = std::strcmp(a->name, b->name);
    return order != 0 ? order < 0 : a < b;
  });
}

const RewireKernelEntry* KernelTableIndex::Find(const std::string& name) const {
  const auto after = std::upper_bound(
      sorted_.begin(), sorted_.end(), std::string_view(name),
      [](std::string_view wanted, const RewireKernelEntry* entry) { return wanted < entry->name; });
  if (after == sorted_.begin()) return nullptr;
  const RewireKernelEntry* entry = *(after - 1);
  return name == entry->name ? entry : nullptr;
}

PackedFunction KernelTableIndex::FunctionOf(const RewireKernelEntry* entry) const {
  PackedFunction function;
  if (entry == nullptr) return function;
  function.call = entry->function;
  if (rows_ == nullptr) return function;
  function.row = &rows_[entry - entries_];
  function.workspace = function.row->workspace;
  if (work_ != nullptr) function.work = &work_[entry - entries_];
  return function;
}

Array<std::string> KernelTableIndex::Names() const {
  Array<std::string> names;
  names.reserve(sorted_.size());
  for (const RewireKernelEntry* entry : sorted_) names.emplace_back(entry->name);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace rewire
