// SPDX-License-Identifier: Apache-2.0
//
// A site is an instruction that reserves memory, by the calls that lead to it. A variable is a pointer or a
// number of the source that is set where paths meet. This header also decides where each site lies.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "rewire/compiler/aot/static_value.h"

namespace rewire::aot {

// The places of a site's instances.
using Offsets = std::vector<std::uint64_t>;

struct Site {
  std::uint64_t bytes = 0;
  // A tensor lies on it. Memory that is only reserved takes no place.
  bool is_used = false;
  // How many tensors of earlier rounds of a loop may still be read when the site reserves memory again, and
  // one. Each has its own place in the arena.
  std::uint32_t instances = 1;
  std::set<std::uint32_t> beside;  // sites that may hold something when this one reserves memory
  // Sites beside that may begin at the same address: a kernel writes this one in place of them.
  std::set<std::uint32_t> in_place_of{};
  // Sites beside that this one may overlap where it begins so many bytes in front of them, or more. The
  // kernel that writes this one has then read what it overwrites.
  std::map<std::uint32_t, std::uint64_t> ahead_of{};
  // The place that the executable gives the tensor: its storage and the offset there.
  Place origin{};
  Offsets offsets{};
};

// A variable of the source that is assigned at the ends of the paths that meet.
struct Variable {
  bool is_pointer = false;
  bool is_const = false;         // points to memory that may be read-only
  std::vector<Place> sources{};  // what it may be set to
  // The memory that it may point to; FindTargets fills it in.
  std::set<std::uint32_t> sites{};
  std::set<std::uint32_t> outputs{};
};

void FindTargets(std::vector<Variable>* variables);

// Gives every instance of each used site an offset that is a multiple of `alignment`, and returns the bytes
// of the arena. Sites beside each other do not overlap, unless one is written over the other. Each is placed
// as low as it goes. Several orders are tried: by number, from the last, by size, and with the sites first
// that made an earlier order's arena large. From the last, each site finds the one that is written over it.
// The smallest arena is kept.
std::uint64_t PlaceSites(std::vector<Site>* sites, std::uint64_t alignment);

}  // namespace rewire::aot
