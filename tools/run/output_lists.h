// SPDX-License-Identifier: Apache-2.0
//
// The elements of an output stand for strings or keys, by the lists in an executable's metadata
// (docs/format.md). They are positions of strings, or the values of maps, with a column for each key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/executable_format/module.h"

namespace rewire::tools {

struct OutputLists {
  nlohmann::ordered_json strings;  // a list of strings, or null
  nlohmann::ordered_json keys;     // a list of strings or integers, or null

  // The string at a position; null if there is none.
  const std::string* StringAt(std::int64_t position) const;
};

OutputLists ListsOf(const Module& module, const std::string& function, std::uint32_t output);

}  // namespace rewire::tools
