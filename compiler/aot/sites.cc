// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/sites.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rewire::aot {

void FindTargets(std::vector<Variable>* variables) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Variable& variable : *variables) {
      const std::size_t before = variable.sites.size() + variable.outputs.size();
      const bool was_const = variable.is_const;
      for (const Place& source : variable.sources) {
        if (source.base == Place::Base::kStorage) variable.sites.insert(source.index);
        if (source.base == Place::Base::kOutput) variable.outputs.insert(source.index);
        if (source.base == Place::Base::kVariable) {
          const Variable& other = (*variables)[source.index];
          if (&other == &variable) continue;
          variable.sites.insert(other.sites.begin(), other.sites.end());
          variable.outputs.insert(other.outputs.begin(), other.outputs.end());
          variable.is_const = variable.is_const || other.is_const;
        }
        variable.is_const = variable.is_const || source.base == Place::Base::kConstant ||
                            source.base == Place::Base::kLiteral || source.base == Place::Base::kInput ||
                            source.base == Place::Base::kNumber;
      }
      changed = changed || variable.sites.size() + variable.outputs.size() != before ||
                variable.is_const != was_const;
    }
  }
}

std::uint64_t PlaceSites(std::vector<Site>* sites, std::uint64_t alignment) {
  std::vector<std::vector<std::uint32_t>> beside(sites->size());
  for (std::uint32_t i = 0; i < sites->size(); ++i) {
    for (const std::uint32_t other : (*sites)[i].beside) {
      if (other == i) continue;
      beside[i].push_back(other);
      beside[other].push_back(i);
    }
  }
  std::vector<std::uint32_t> order(sites->size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return (*sites)[a].bytes > (*sites)[b].bytes; });
  std::uint64_t arena = 0;
  for (const std::uint32_t i : order) {
    Site& site = (*sites)[i];
    if (!site.is_used) continue;
    const std::uint64_t bytes = (site.bytes + alignment - 1) / alignment * alignment;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;  // begin, end
    for (const std::uint32_t other : beside[i]) {
      const Site& placed = (*sites)[other];
      for (const std::uint64_t offset : placed.offsets) taken.emplace_back(offset, offset + placed.bytes);
    }
    for (std::uint32_t instance = 0; instance < site.instances; ++instance) {
      std::sort(taken.begin(), taken.end());
      std::uint64_t at = 0;
      for (const auto& [begin, end] : taken) {
        if (begin >= at + bytes) break;
        at = std::max(at, (end + alignment - 1) / alignment * alignment);
      }
      site.offsets.push_back(at);
      taken.emplace_back(at, at + bytes);
      arena = std::max(arena, at + bytes);
    }
  }
  return arena;
}

}  // namespace rewire::aot
