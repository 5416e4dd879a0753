// SPDX-License-Identifier: Apache-2.0
//
// Apart from executable.cc, so that a program has the reader and the verifier only if it opens files.
#include <cstring>

#include "rewire/executable_format/executable.h"

namespace rewire {

// Hosts that keep no index look a function up in every run. The answer is no std::optional, because a CPU
// waits for one: g++ writes it in two parts and reads it at once.
std::size_t PositionOfFunction(const Module& module, std::string_view name) {
  std::size_t i = 0;
  for (; i < module.functions.size(); ++i) {
    const std::string& other = module.functions[i].name;
    if (other.size() == name.size() && std::memcmp(other.data(), name.data(), name.size()) == 0) break;
  }
  return i;
}

std::optional<std::uint32_t> Executable::FindFunction(std::string_view name) const {
  const std::size_t position = PositionOfFunction(*module_, name);
  if (position == module_->functions.size()) return std::nullopt;
  return static_cast<std::uint32_t>(position);
}

}  // namespace rewire
