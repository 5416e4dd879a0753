// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/analysis/reached.h"

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"

namespace rewire {

Array<std::uint8_t> FunctionsReached(const Module& module, std::uint32_t first) {
  Array<std::uint8_t> reached(module.functions.size());
  Array<std::uint32_t> pending = {first};
  reached[first] = true;
  while (!pending.empty()) {
    const Function& function = module.functions[pending.back()];
    pending.pop_back();
    for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      const std::uint32_t* at = function.code.data() + pc;
      const Effects& effects = EffectsOf(at);
      if (effects.function == 0) continue;
      const std::uint32_t callee = at[effects.function];
      if (!reached[callee]) pending.push_back(callee);
      reached[callee] = true;
    }
  }
  return reached;
}

}  // namespace rewire
