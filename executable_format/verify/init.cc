// SPDX-License-Identifier: Apache-2.0
#include "executable_format/instruction.h"
#include "executable_format/verify/context.h"

namespace rewire::verify {

Status CheckInit(const Module& module) {
  std::vector<std::uint32_t> pending;
  std::vector<bool> reached(module.functions.size());
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    if (module.functions[i].name != kInitFunction) continue;
    pending.push_back(static_cast<std::uint32_t>(i));
    reached[i] = true;
  }
  while (!pending.empty()) {
    const Function& function = module.functions[pending.back()];
    pending.pop_back();
    for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      const std::uint32_t* at = function.code.data() + pc;
      const Opcode opcode = OpcodeOf(*at);
      if (opcode == Opcode::kLoadConst) {
        const std::uint32_t constant = at[WordOf(Opcode::kLoadConst, "constant")];
        if (module.constants[constant].kind != ConstantKind::kComputed) continue;
        return ViolationAt(module, function, pc,
                           {"'__init' runs this, and is to compute constant ", constant});
      }
      if (opcode != Opcode::kInvoke && opcode != Opcode::kAllocClosure) continue;
      static_assert(WordOf(Opcode::kInvoke, "function") == WordOf(Opcode::kAllocClosure, "function"));
      const std::uint32_t callee = at[WordOf(Opcode::kInvoke, "function")];
      if (!reached[callee]) pending.push_back(callee);
      reached[callee] = true;
    }
  }
  return {};
}

}  // namespace rewire::verify
