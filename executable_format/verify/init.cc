// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/array.h"
#include "rewire/executable_format/analysis/reached.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/verify/context.h"

namespace rewire::verify {

Status CheckInit(const Module& module) {
  const std::size_t init = PositionOfFunction(module, kInitFunction);
  if (init == module.functions.size()) return {};
  const Array<std::uint8_t> reached = FunctionsReached(module, static_cast<std::uint32_t>(init));
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    if (!reached[i]) continue;
    const Function& function = module.functions[i];
    for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      const std::uint32_t* at = function.code.data() + pc;
      if (OpcodeOf(*at) != Opcode::kLoadConst) continue;
      const std::uint32_t constant = at[WordOf(Opcode::kLoadConst, "constant")];
      if (module.constants[constant].kind != ConstantKind::kComputed) continue;
      return ViolationAt(module, function, pc,
                         {"'__init' runs this, and is to compute constant {}", constant});
    }
  }
  return {};
}

}  // namespace rewire::verify
