// SPDX-License-Identifier: Apache-2.0
// The instruction set as data, expanded from isa.def: opcodes, their operands, and what holds of a kind of
// operand.
//
// An instruction in memory and in the file (32-bit little-endian words):
//
//   word 0                      words 1 ...
//   +--------+----------------+-----------+-----------+----------------------+
//   | code:8 | length:24      | operand 0 | operand 1 | count, elements ...  |
//   +--------+----------------+-----------+-----------+----------------------+
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rewire {

enum class Opcode : std::uint8_t {
#define REWIRE_OPCODE(Name, code, ...) k##Name = code,
#include "rewire/executable_format/isa.def"
};

enum class OperandKind : std::uint8_t {
#define REWIRE_OPERAND_KIND(Name, ...) k##Name,
#include "rewire/executable_format/isa.def"
};

// The place where execution continues after an instruction.
enum class Flow : std::uint8_t { kNext, kJump, kBranch, kCall, kEnd };

// The word that means "no register" or "no string" in an optional operand.
inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;

inline constexpr std::uint32_t kMaxInstructionWords = (1u << 24) - 1;

enum class OperandCount : std::uint8_t { kOne, kOptional, kList };
enum class RegisterUse : std::uint8_t { kNone, kRead, kWrite, kKill };
enum class ModuleTable : std::uint8_t { kNone, kConstants, kFunctions, kKernels, kDevices, kStrings };

// The row of isa.def about a kind of operand. Whoever asks such a question asks it here: a switch over the
// kinds is for what differs from kind to kind, as their text.
struct OperandTraits {
  std::uint8_t words;  // of a fixed operand; for a list, of one element
  OperandCount count;
  RegisterUse use;
  ModuleTable table;
};

namespace isa_internal {
inline constexpr OperandTraits kKinds[] = {
#define REWIRE_OPERAND_KIND(Name, ROW_NAME, words, count, use, table, ...) \
  {words, OperandCount::count, RegisterUse::use, ModuleTable::table},
#include "rewire/executable_format/isa.def"
};
}  // namespace isa_internal

constexpr const OperandTraits& TraitsOf(OperandKind kind) {
  return isa_internal::kKinds[static_cast<std::size_t>(kind)];
}
constexpr std::uint32_t OperandWords(OperandKind kind) { return TraitsOf(kind).words; }
constexpr bool IsList(OperandKind kind) { return TraitsOf(kind).count == OperandCount::kList; }
constexpr bool IsOptional(OperandKind kind) { return TraitsOf(kind).count == OperandCount::kOptional; }
constexpr bool IsRegister(OperandKind kind) { return TraitsOf(kind).use != RegisterUse::kNone; }
// Whether the instruction puts a value into such a register.
constexpr bool IsResult(OperandKind kind) { return TraitsOf(kind).use == RegisterUse::kWrite; }

// The columns of registers, as isa.def explains them.
enum class Accepts : std::uint8_t { kAny, kScalar, kArgument, kAdt, kClosure, kStorage, kInputs, kResult };
enum class Access : std::uint8_t { kObject, kContents };
enum class Makes : std::uint8_t {
  kNone,     // the instruction changes no register
  kNothing,  // the register is emptied
  kSame,
  kView,
  kField,
  kTuple,
  kClosure,
  kTensor,
  kShape,
  kCopy,
  kCalled,
  kComputed,
  kStorage,
  kInteger,
  kLoaded
};

// Texts are C strings. Their meaning is only in docs/isa.md, because this table is part of every host.
struct OperandInfo {
  const char* name = "";
  OperandKind kind = OperandKind::kRead;
  // The kinds that a register may hold that is read.
  Accepts accepts = Accepts::kAny;
  Access access = Access::kObject;
  // For a register that is written: what it then holds, and the place of the operand that it comes from; the
  // row's operand_count if there is none.
  Makes makes = Makes::kNone;
  std::uint8_t source = 0;
};

inline constexpr std::size_t kMaxOperands = 6;

struct OpcodeInfo {
  std::string_view mnemonic;  // "alloc_tensor"
  Opcode opcode;
  Flow flow;
  std::uint8_t operand_count = 0;
  std::array<OperandInfo, kMaxOperands> operands{};
};

namespace isa_internal {

// An operand as isa.def writes it.
struct OperandSpec {
  OperandInfo info;
  std::string_view source = "";  // the name of the operand that a written register's value comes from
};

// Has no definition on purpose: a constant expression that reaches it is a compile error.
void TheSourceIsNoOperandOfTheRow();

template <typename... Operands>
consteval OpcodeInfo MakeRow(Opcode opcode, std::string_view mnemonic, Flow flow, Operands... operands) {
  constexpr std::size_t kCount = sizeof...(Operands);
  static_assert(kCount <= kMaxOperands);
  const std::array<OperandSpec, kCount> specs{operands...};
  OpcodeInfo row{mnemonic, opcode, flow, kCount, {}};
  for (std::size_t i = 0; i < kCount; ++i) {
    row.operands[i] = specs[i].info;
    std::size_t source = 0;
    while (source < kCount && specs[source].info.name != specs[i].source) ++source;
    if (source == kCount && !specs[i].source.empty()) TheSourceIsNoOperandOfTheRow();
    row.operands[i].source = static_cast<std::uint8_t>(source);
  }
  return row;
}

#define READ(n, accepts, access) \
  (OperandSpec{{n, OperandKind::kRead, Accepts::k##accepts, Access::k##access}})
#define OPT_READ(n, accepts, access) \
  (OperandSpec{{n, OperandKind::kOptRead, Accepts::k##accepts, Access::k##access}})
#define READS(n, accepts, access) \
  (OperandSpec{{n, OperandKind::kReads, Accepts::k##accepts, Access::k##access}})
#define WRITE(n, makes, source) \
  (OperandSpec{{n, OperandKind::kWrite, Accepts::kAny, Access::kObject, Makes::k##makes}, source})
#define OPT_WRITE(n, makes, source) \
  (OperandSpec{{n, OperandKind::kOptWrite, Accepts::kAny, Access::kObject, Makes::k##makes}, source})
#define KILL(n) (OperandSpec{{n, OperandKind::kKill, Accepts::kAny, Access::kObject, Makes::kNothing}})
#define IMM32(n) (OperandSpec{{n, OperandKind::kImm32}})
#define IMM64(n) (OperandSpec{{n, OperandKind::kImm64}})
#define DTYPE(n) (OperandSpec{{n, OperandKind::kDType}})
#define CONSTANT(n) (OperandSpec{{n, OperandKind::kConstant}})
#define FUNCTION(n) (OperandSpec{{n, OperandKind::kFunction}})
#define KERNEL(n) (OperandSpec{{n, OperandKind::kKernel}})
#define DEVICE(n) (OperandSpec{{n, OperandKind::kDevice}})
#define STRING(n) (OperandSpec{{n, OperandKind::kString}})
#define TARGET(n) (OperandSpec{{n, OperandKind::kTarget}})
#define DIMS(n) (OperandSpec{{n, OperandKind::kDims}})
#define NEXT Flow::kNext
#define JUMP Flow::kJump
#define BRANCH Flow::kBranch
#define CALL Flow::kCall
#define END Flow::kEnd
inline constexpr OpcodeInfo kRows[] = {
#define REWIRE_OPCODE(Name, code, mnemonic, flow, meaning, ...) \
  MakeRow(Opcode::k##Name, mnemonic, flow, __VA_ARGS__),
#include "rewire/executable_format/isa.def"
};
#undef READ
#undef OPT_READ
#undef WRITE
#undef OPT_WRITE
#undef KILL
#undef IMM32
#undef IMM64
#undef DTYPE
#undef CONSTANT
#undef FUNCTION
#undef KERNEL
#undef DEVICE
#undef STRING
#undef TARGET
#undef READS
#undef DIMS
#undef NEXT
#undef JUMP
#undef BRANCH
#undef CALL
#undef END

}  // namespace isa_internal

inline constexpr std::size_t kOpcodeCount = std::size(isa_internal::kRows);

// The table, indexed by code.
inline constexpr const auto& kOpcodes = isa_internal::kRows;

constexpr bool IsOpcode(std::uint32_t code) { return code < kOpcodeCount; }
constexpr const OpcodeInfo& Info(Opcode opcode) { return kOpcodes[static_cast<std::size_t>(opcode)]; }

// Has no definition on purpose: a constant expression that reaches it is a compile error.
void ThisOpcodeHasNoOperandOfThatName();

// The word of a named operand of an opcode; for a list, the word of its count. Resolved at compile time: a
// name that the row does not have is a compile error.
consteval std::uint32_t WordOf(Opcode opcode, std::string_view operand) {
  std::uint32_t word = 1;
  const OpcodeInfo& info = Info(opcode);
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    if (info.operands[i].name == operand) return word;
    word += OperandWords(info.operands[i].kind);
  }
  ThisOpcodeHasNoOperandOfThatName();
  return 0;
}

// The smallest length in words of an instruction of this opcode: all fixed operands and an empty list.
constexpr std::uint32_t MinWords(Opcode opcode) {
  std::uint32_t words = 1;
  const OpcodeInfo& info = Info(opcode);
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    words += IsList(info.operands[i].kind) ? 1 : OperandWords(info.operands[i].kind);
  }
  return words;
}

namespace isa_internal {

consteval bool CodesAreDense() {
  for (std::size_t i = 0; i < kOpcodeCount; ++i) {
    if (static_cast<std::size_t>(kRows[i].opcode) != i) return false;
  }
  return true;
}
consteval bool ListsStandLast() {
  for (const OpcodeInfo& row : kRows) {
    for (std::size_t i = 0; i + 1 < row.operand_count; ++i) {
      if (IsList(row.operands[i].kind)) return false;
    }
  }
  return true;
}
static_assert(CodesAreDense(), "row i of isa.def must have code i");
static_assert(ListsStandLast(), "a list operand must be the last of its row");
static_assert(kOpcodeCount == 21, "the instruction set has 21 operations");

}  // namespace isa_internal

}  // namespace rewire
