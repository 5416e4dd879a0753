// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/sites.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
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
          taken.push_back(TakenBy(i, other, offset));
        }
      }
      for (std::uint32_t instance = 0; instance < sites_[i].instances; ++instance) {
        const std::uint64_t at = LowestFree(&taken, bytes);
        (*offsets)[i].push_back(at);
        taken.push_back({at, at + bytes});
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
    // Another site may overlap this one at its begin, up to some place before it, or from one behind.
    bool may_coincide = false;
    std::optional<std::uint64_t> up_to{}, from{};

    bool is_shared() const { return may_coincide || up_to || from; }
    bool Allows(std::uint64_t at) const {
      return (may_coincide && at == begin) || (up_to && at <= *up_to) || (from && at >= *from);
    }
    bool Blocks(std::uint64_t at, std::uint64_t bytes) const {
      return at < end && begin < at + bytes && !Allows(at);
    }
  };

  std::uint64_t RoundUp(std::uint64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  // The part of the arena that `other` takes at `offset`, as a site sees it.
  Taken TakenBy(std::uint32_t site, std::uint32_t other, std::uint64_t offset) const {
    Taken taken{offset, offset + sites_[other].bytes};
    if (sites_[site].instances != 1 || sites_[other].instances != 1) return taken;
    if (sites_[other].beside.count(site) == 0) {
      taken.may_coincide = sites_[site].in_place_of.count(other) != 0;
      const auto ahead = sites_[site].ahead_of.find(other);
      if (ahead != sites_[site].ahead_of.end() && ahead->second <= offset)
        taken.up_to = offset - ahead->second;
    }
    if (sites_[site].beside.count(other) == 0) {
      taken.may_coincide = taken.may_coincide || sites_[other].in_place_of.count(site) != 0;
      const auto ahead = sites_[other].ahead_of.find(site);
      if (ahead != sites_[other].ahead_of.end()) taken.from = offset + ahead->second;
    }
    return taken;
  }

  // The lowest place beside all that is taken, or a lower one over what may be shared.
  std::uint64_t LowestFree(std::vector<Taken>* taken, std::uint64_t bytes) const {
    std::sort(taken->begin(), taken->end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
    std::uint64_t lowest = 0;
    for (const Taken& each : *taken) {
      if (each.begin >= lowest + bytes) break;
      lowest = std::max(lowest, RoundUp(each.end));
    }
    std::vector<Taken> shared;
    std::copy_if(taken->begin(), taken->end(), std::back_inserter(shared),
                 [](const Taken& each) { return each.is_shared(); });
    if (shared.empty()) return lowest;
    std::vector<std::uint64_t> places = {0};
    for (const Taken& each : *taken) {
      places.push_back(RoundUp(each.end));
      if (each.may_coincide) places.push_back(each.begin);
      if (each.from) places.push_back(RoundUp(*each.from));
    }
    for (const std::uint64_t at : places) {
      const auto allows = [&](const Taken& each) { return each.Allows(at); };
      const auto blocks = [&](const Taken& each) { return each.Blocks(at, bytes); };
      if (at < lowest && std::any_of(shared.begin(), shared.end(), allows) &&
          std::none_of(taken->begin(), taken->end(), blocks)) {
        lowest = at;
      }
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
  place({order.rbegin(), order.rend()});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return (*sites)[a].bytes > (*sites)[b].bytes; });
  place(order);
  for (std::size_t i = 0; i < sites->size(); ++i) (*sites)[i].offsets = std::move(best[i]);
  return arena;
}

}  // namespace rewire::aot
