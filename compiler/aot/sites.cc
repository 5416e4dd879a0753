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

namespace {

class Placement {
 public:
  Placement(const std::vector<Site>& sites, std::uint64_t alignment)
      : sites_(sites), alignment_(alignment), beside_(sites.size()) {
    for (std::uint32_t i = 0; i < sites.size(); ++i) {
      for (const std::uint32_t other : sites[i].beside) {
        if (other == i) continue;
        beside_[i].push_back(other);
        beside_[other].push_back(i);
      }
    }
  }

  // Places the sites in this order. Returns the bytes of the arena; `*offsets` are by site and instance, and
  // `*highest` is the site that ends there.
  std::uint64_t Place(const std::vector<std::uint32_t>& order, std::vector<Offsets>* offsets,
                      std::uint32_t* highest) const {
    offsets->assign(sites_.size(), {});
    std::uint64_t arena = 0;
    for (const std::uint32_t i : order) {
      if (!sites_[i].is_used) continue;
      const std::uint64_t bytes = RoundUp(sites_[i].bytes);
      std::vector<Taken> taken;
      for (const std::uint32_t other : beside_[i]) {
        for (const std::uint64_t offset : (*offsets)[other]) {
          taken.push_back({offset, offset + sites_[other].bytes, MayCoincide(i, other)});
        }
      }
      for (std::uint32_t instance = 0; instance < sites_[i].instances; ++instance) {
        const std::uint64_t at = LowestFree(&taken, bytes);
        (*offsets)[i].push_back(at);
        taken.push_back({at, at + bytes, false});
        if (at + bytes > arena) {
          arena = at + bytes;
          *highest = i;
        }
      }
    }
    return arena;
  }

 private:
  struct Taken {
    std::uint64_t begin, end;
    bool may_coincide;
  };

  std::uint64_t RoundUp(std::uint64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  bool MayCoincide(std::uint32_t a, std::uint32_t b) const {
    const auto writes = [&](std::uint32_t out, std::uint32_t in) {
      return sites_[out].in_place_of.count(in) != 0 && sites_[in].beside.count(out) == 0;
    };
    return sites_[a].instances == 1 && sites_[b].instances == 1 && (writes(a, b) || writes(b, a));
  }

  // The lowest place beside all that is taken, or the begin of what may coincide if that is lower and free.
  std::uint64_t LowestFree(std::vector<Taken>* taken, std::uint64_t bytes) const {
    std::sort(taken->begin(), taken->end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
    std::uint64_t lowest = 0;
    for (const Taken& each : *taken) {
      if (each.begin >= lowest + bytes) break;
      lowest = std::max(lowest, RoundUp(each.end));
    }
    for (const Taken& shared : *taken) {
      const std::uint64_t at = shared.begin;
      const auto is_taken = [&](const Taken& each) {
        return at < each.end && each.begin < at + bytes && !(each.may_coincide && each.begin == at);
      };
      if (shared.may_coincide && at < lowest && std::none_of(taken->begin(), taken->end(), is_taken))
        lowest = at;
    }
    return lowest;
  }

  const std::vector<Site>& sites_;
  const std::uint64_t alignment_;
  std::vector<std::vector<std::uint32_t>> beside_;
};

}  // namespace

std::uint64_t PlaceSites(std::vector<Site>* sites, std::uint64_t alignment) {
  // A try costs the square of the sites at worst.
  const std::size_t most_tries = std::clamp<std::size_t>(20'000 / (sites->size() + 1), 1, 32);
  const Placement placement(*sites, alignment);
  std::vector<std::uint32_t> order(sites->size());
  std::iota(order.begin(), order.end(), 0U);
  std::uint64_t arena = UINT64_MAX;
  std::vector<Offsets> best;
  const auto place = [&](std::vector<std::uint32_t> tried) {
    for (std::size_t i = 0; i < most_tries; ++i) {
      std::vector<Offsets> offsets;
      std::uint32_t highest = 0;
      const std::uint64_t bytes = placement.Place(tried, &offsets, &highest);
      if (bytes < arena) {
        arena = bytes;
        best = std::move(offsets);
      }
      const auto found = std::find(tried.begin(), tried.end(), highest);
      if (found == tried.begin() || found == tried.end()) break;
      std::rotate(tried.begin(), found, found + 1);
    }
  };
  place(order);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return (*sites)[a].bytes > (*sites)[b].bytes; });
  place(order);
  for (std::size_t i = 0; i < sites->size(); ++i) (*sites)[i].offsets = std::move(best[i]);
  return arena;
}

}  // namespace rewire::aot
