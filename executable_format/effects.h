// SPDX-License-Identifier: Apache-2.0
//
// The effects of each instruction on registers, from the columns of isa.def. An analysis that reads this, and
// not the opcode, knows every row of the table, also one that is added later.
#pragma once

#include <array>
#include <cstdint>

#include "rewire/executable_format/isa.h"

namespace rewire {

// Places of an opcode's operands, as words of the instruction; 0: the row has no such operand.
struct Effects {
  struct Read {
    std::uint8_t word = 0;  // of the register; for a list, of its count
    std::uint8_t operand = 0;
    Accepts accepts = Accepts::kAny;
    Access access = Access::kObject;
  };

  std::uint8_t read_count = 0;
  Read reads[3] = {};  // single registers, in the order of the operands; an optional one may be kNone
  Read list = {};      // the registers of the list
  Makes makes = Makes::kNone;
  std::uint8_t dst = 0;  // the register that it changes; kNone where an optional one is missing
  std::uint8_t source = 0;
  bool source_is_list = false;
  std::uint8_t function = 0;
  std::uint8_t kernel = 0;
  std::uint8_t result = 0;  // the register whose value leaves the function
  std::uint8_t dtype = 0;
  std::uint8_t dims = 0;  // the list of dimensions
};

namespace isa_internal {

// Has no definition on purpose: a constant expression that reaches it is a compile error, which shows `why`.
void RefuseToCompile(const char* why);

consteval Effects FindEffects(const OpcodeInfo& info) {
  Effects found;
  std::uint8_t words[kMaxOperands + 1] = {};  // by operand; behind the last one, 0
  std::uint8_t word = 1;
  for (std::uint8_t i = 0; i < info.operand_count; ++i) {
    words[i] = word;
    word = static_cast<std::uint8_t>(word + OperandWords(info.operands[i].kind));
  }
  for (std::uint8_t i = 0; i < info.operand_count; ++i) {
    const OperandInfo& operand = info.operands[i];
    const OperandTraits& traits = TraitsOf(operand.kind);
    if (IsList(operand.kind) && i + 1 != info.operand_count) RefuseToCompile("a list stands last");
    if (traits.use == RegisterUse::kRead) {
      if (found.dst != 0 && !IsList(operand.kind))
        RefuseToCompile("registers that are read stand before the one written");
      Effects::Read& read = IsList(operand.kind) ? found.list : found.reads[found.read_count++];
      read = {words[i], i, operand.accepts, operand.access};
      if (operand.accepts == Accepts::kResult) found.result = words[i];
    } else if (traits.use != RegisterUse::kNone) {
      if (found.dst != 0) RefuseToCompile("an instruction changes one register");
      if (IsList(operand.kind)) RefuseToCompile("a list is read");
      found.makes = operand.makes;
      found.dst = words[i];
      found.source = words[operand.source];
      found.source_is_list =
          operand.source < info.operand_count && IsList(info.operands[operand.source].kind);
    }
    if (traits.table == ModuleTable::kFunctions) found.function = words[i];
    if (traits.table == ModuleTable::kKernels) found.kernel = words[i];
    if (operand.kind == OperandKind::kDType) found.dtype = words[i];
    if (operand.kind == OperandKind::kDims) found.dims = words[i];
  }
  return found;
}

inline constexpr auto kEffects = [] {
  std::array<Effects, kOpcodeCount> all{};
#define REWIRE_OPCODE(Name, code, ...) all[code] = FindEffects(kOpcodes[code]);
#include "rewire/executable_format/isa.def"
  return all;
}();

}  // namespace isa_internal

constexpr const Effects& EffectsOf(Opcode opcode) {
  return isa_internal::kEffects[static_cast<std::size_t>(opcode)];
}
}  // namespace rewire
