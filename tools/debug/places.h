// SPDX-License-Identifier: Apache-2.0
//
// Places in a program, as people name them: by function, pc or node of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tools {

// An instruction.
struct Site {
  std::uint32_t function = 0;
  std::uint32_t pc = 0;  // word index

  bool operator==(const Site& other) const { return function == other.function && pc == other.pc; }
};

// The words at which the instructions of a function start.
std::vector<std::uint32_t> InstructionStarts(const Function& function);

// The instructions that `text` names:
//   "main"          the first one of a function
//   "main@12"       the one at word 12
//   "12" or "@12"   the same in the function `here`
//   "conv_1"        the first one of each stretch of code that does the work of this node of the model
//   "Conv"          the same for every node of this operator
// A function is preferred to a node. Errors: kNotFound, with similar names, or the nearest instructions.
Result<std::vector<Site>> FindPlace(const Module& module, std::string_view text,
                                    std::optional<std::uint32_t> here);

// "main@12".
std::string SiteText(const Module& module, const Site& site);

// Names of functions and nodes that FindPlace knows, each once.
std::vector<std::string> PlaceNames(const Module& module);

}  // namespace rewire::tools
