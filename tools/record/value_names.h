// SPDX-License-Identifier: Apache-2.0
//
// Reads which registers hold which values of the model, as the compiler notes it in the metadata
// (docs/format.md).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/executable_format/module.h"

namespace rewire::tools {

struct NamedRegister {
  std::uint32_t reg = 0;
  std::string name;            // of the model's value
  bool channels_last = false;  // it holds that value with axis 1 moved to the end
};

class ValueNames {
 public:
  // Reads the entries of all functions. Anyone may have written the file: what is no such entry is left out.
  explicit ValueNames(const Module& module);

  // The values that registers hold when a run comes to this instruction.
  Span<const NamedRegister> At(std::uint32_t function, std::uint32_t pc) const;
  bool empty() const { return places_.empty(); }

 private:
  void Read(const std::string& text, const Module& module, std::uint32_t function);

  std::unordered_map<std::uint64_t, std::vector<NamedRegister>> places_;  // by function and pc
};

// A note of the compiler in its parts: "Conv 'conv_1'" is an operator and a name. Other notes have neither.
struct NoteParts {
  std::string_view whole, kind, name;
};
NoteParts SplitNote(std::string_view note);

}  // namespace rewire::tools
