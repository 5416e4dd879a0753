// SPDX-License-Identifier: Apache-2.0
//
// Writes down where a run has the values of the model. Tools that compare a run with the model read this from
// the executable's metadata (docs/format.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"

namespace rewire::compiler {

// When a run has come to the instruction at `pc`, the register holds the model's value of this name.
struct ValuePlace {
  std::uint32_t pc = 0;  // word index
  std::uint32_t reg = 0;
  std::string name;
  bool channels_last = false;  // with axis 1 moved to the end
};

// Adds the places to the module's metadata, as "values FUNCTION.0" and so on. The value is a list in JSON.
// Several entries share the places, because the size of one is limited. Names that are no UTF-8 are left out.
void AddValueNames(const std::string& function, const std::vector<ValuePlace>& places, Module* module);

}  // namespace rewire::compiler
