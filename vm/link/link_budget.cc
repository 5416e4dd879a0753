// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/link_budget.h"

#include <algorithm>

#include "rewire/executable_format/module_size.h"

namespace rewire {

namespace {

// The default limit for decoded constants and copies: a fixed amount for every file, plus a multiple of the
// bytes of constants in the file and of parameters.
std::uint64_t DefaultLinkBytes(std::uint64_t given_bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{512} << 20;
  constexpr std::uint64_t kRatio = 16;  // what is compressed becomes rarely more than that
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46;
  return kAlways + kRatio * std::min(given_bytes, kMost);
}

}  // namespace

WorkMeter::Budget LinkBudget(const Module& module, Span<const ParameterSet> parameters,
                             const LinkLimits& limits) {
  std::uint64_t given = 0;
  for (const Constant& constant : module.constants) given += constant.stored.view.size();
  for (const ParameterSet& set : parameters) given += set.stored_bytes();
  WorkMeter::Budget budget;
  budget.stage = "linking";
  budget.units = limits.work != 0 ? limits.work : DefaultWork(ModuleSize(module));
  budget.units_option = "LinkLimits::work";
  budget.bytes = limits.bytes != 0 ? limits.bytes : DefaultLinkBytes(given);
  budget.bytes_option = "LinkLimits::bytes";
  budget.deadline = limits.deadline;
  budget.deadline_option = "LinkLimits::deadline";
  return budget;
}

}  // namespace rewire
