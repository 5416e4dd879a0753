// SPDX-License-Identifier: Apache-2.0
// Modules that grow in one direction: what verifying and linking costs must grow with them and no faster.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"
#include "rewire/vm/program.h"

namespace rewire::test {

// How far from linear growth a cost may be.
inline constexpr double kTolerance = 1.3;

struct GrowingModule {
  std::string name;
  // With `n` of what the name says. Links with GrowingLinkOptions.
  std::function<Module(std::uint32_t n)> make;
  // Every output of function 0 is made in place, at any size: the plan has not given up.
  bool in_place = false;
};

std::vector<GrowingModule> GrowingModules();

// Modules that cannot be analyzed in time linear in the code: these are what budgets are for.
std::vector<GrowingModule> ExplodingModules();

// With the kernel that the modules import.
LinkOptions GrowingLinkOptions();
// With room for as many outputs as the modules have.
FormatLimits GrowingFormatLimits();

}  // namespace rewire::test
