// SPDX-License-Identifier: Apache-2.0
// This file finds what is in use at once, by which the sites of a program get their places.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "rewire/compiler/aot/static_program.h"

namespace rewire::aot {

std::uint32_t StaticProgram::SiteHere(std::uint64_t bytes) {
  const auto [found, made] =
      site_numbers_.try_emplace({frame_->id, pc_}, static_cast<std::uint32_t>(sites_.size()));
  if (made) sites_.push_back({});
  sites_[found->second].bytes = bytes;
  return found->second;
}

// Calls visit(const Value&) for each part of each value that is still of use behind the instruction, in the
// frames that call too.
template <typename Visit>
void StaticProgram::ForEachLive(const State& state, Visit visit) const {
  const State* values = &state;
  std::uint32_t pc = pc_;
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->caller) {
    frame->facts->live_after.at(pc).ForEach([&](std::uint32_t reg) { ForEachPart((*values)[reg], visit); });
    values = &frame->caller_state;
    pc = frame->call_pc;
  }
}

// Notes what may hold something while the site reserves memory.
Status StaticProgram::NoteLive(std::uint32_t site, const State& state) {
  std::uint32_t own = 0;
  bool is_lost = false;
  ForEachLive(state, [&](const Value& part) {
    NoteBeside(site, part.place);
    is_lost = is_lost || (part.place.base == Place::Base::kStorage && part.place.index == site);
    if (part.place.base == Place::Base::kVariable) {
      own += variables_[part.place.index].sites.count(site) != 0 ? 1 : 0;
    }
  });
  if (is_lost) return Refuse("memory of an earlier round is read that no path has carried");
  sites_[site].instances = std::max(sites_[site].instances, own + 1);
  return {};
}

// Notes that the memory of this place is in use together with the site.
void StaticProgram::NoteBeside(std::uint32_t site, const Place& place) {
  std::set<std::uint32_t>& beside = sites_[site].beside;
  if (place.base == Place::Base::kStorage) beside.insert(place.index);
  if (place.base == Place::Base::kVariable) {
    const std::set<std::uint32_t>& may = variables_[place.index].sites;
    beside.insert(may.begin(), may.end());
  }
}

// The source takes an instance in which nothing lies that is still of use.
void StaticProgram::EmitSite(std::uint32_t site, const State& state) {
  const Site& taken = sites_[site];
  if (taken.instances == 1 || !taken.is_used) return;
  std::set<std::string> busy;
  ForEachLive(state, [&](const Value& part) {
    if (part.place.base != Place::Base::kVariable) return;
    if (variables_[part.place.index].sites.count(site) == 0) return;
    busy.insert(fmt::format("(uintptr_t){} - (uintptr_t)s{} < {}u",
                            Address({Place::Base::kVariable, part.place.index, 0}), site, taken.bytes));
  });
  used_sites_.insert(site);
  Emit(fmt::format("  s{} = arena + {};", site, taken.offsets[0]));
  for (std::uint32_t i = 1; i < taken.instances; ++i) {
    Emit(fmt::format("  if ({}) s{} = arena + {};", fmt::join(busy, " || "), site, taken.offsets[i]));
  }
}

// A tensor gets a place of its own: two tensors on one storage do not pass data through it. If they overlap
// there while both are in use, they keep doing so only if a kernel writes one in place of the other.
Status StaticProgram::AllocTensorApart(const State& state, const Place& origin, Value* tensor) {
  if (origin.base != Place::Base::kStorage) return Refuse("the storage differs from path to path");
  const std::uint32_t site = SiteHere(tensor->bytes);
  tensor->place = {Place::Base::kStorage, site, 0};
  sites_[site].origin = origin;
  if (pass_ == Pass::kSource) EmitSite(site, state);
  if (pass_ != Pass::kMemory) return {};
  sites_[site].is_used = true;
  if (Status noted = NoteLive(site, state); !noted) return noted;
  for (const std::uint32_t other : sites_[site].beside) {
    const Place& place = sites_[other].origin;
    if (other != site && place.base == origin.base && place.index == origin.index &&
        place.offset < origin.offset + tensor->bytes && origin.offset < place.offset + sites_[other].bytes) {
      overlaps_.insert({other, site});
    }
  }
  fresh_.insert(site);
  return {};
}

// The first call that is given a site since it was reserved may write it over an input that is of no use
// afterwards: where the executable does so, or the kernel may.
void StaticProgram::NoteInPlace(const State& state, const KernelCall& call) {
  if (places_ != PlacesOf::kTensors) return;
  const std::size_t inputs = call.arguments.size() - call.outputs;
  const auto site_of = [&](const CallArgument& argument) {
    const Place& place = argument.value.place;
    return place.base == Place::Base::kStorage && place.offset == 0 ? std::optional(place.index)
                                                                    : std::nullopt;
  };
  std::set<std::uint32_t> live;
  ForEachLive(state, [&](const Value& part) {
    if (part.place.base == Place::Base::kStorage) live.insert(part.place.index);
    if (part.place.base != Place::Base::kVariable) return;
    const std::set<std::uint32_t>& may = variables_[part.place.index].sites;
    live.insert(may.begin(), may.end());
  });
  for (std::size_t output = inputs; output < call.arguments.size(); ++output) {
    const std::optional<std::uint32_t> site = site_of(call.arguments[output]);
    if (!site || fresh_.count(*site) == 0) continue;
    for (std::size_t input = 0; input < inputs; ++input) {
      const std::optional<std::uint32_t> given = site_of(call.arguments[input]);
      if (!given || live.count(*given) != 0 || fresh_.count(*given) != 0) continue;
      const std::optional<std::uint64_t> lead =
          input == 0 && output == inputs ? calls_->LeadOf(call) : std::nullopt;
      if (lead) sites_[*site].ahead_of.emplace(*given, *lead);
      if (lead == 0 || (sites_[*given].origin != Place{} && sites_[*given].origin == sites_[*site].origin)) {
        sites_[*site].in_place_of.insert(*given);
      }
    }
  }
  for (const CallArgument& argument : call.arguments) {
    if (argument.value.place.base == Place::Base::kStorage) fresh_.erase(argument.value.place.index);
  }
}

Status StaticProgram::CheckOverlaps() {
  for (const auto& [earlier, site] : overlaps_) {
    if (sites_[site].in_place_of.count(earlier) != 0) continue;
    return Fail(StatusCode::kUnsupported, "{}: two tensors in use overlap on one storage",
                module_.functions[root_.function].name);
  }
  return {};
}

}  // namespace rewire::aot
