// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/relay_fields.h"

#include <fmt/format.h>

#include "rewire/executable_format/import/stream.h"

namespace rewire::tvm {
namespace {

struct FieldCount {
  std::size_t fixed;
  int list_count = -1;  // the field that counts the list behind the fixed ones
};

FieldCount Expected(const RelayInstruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kMove:
    case Opcode::kGetTag:
    case Opcode::kLoadConsti:
    case Opcode::kShapeOf:
      return {2};
    case Opcode::kRet:
    case Opcode::kGoto:
    case Opcode::kKillRegister:
      return {1};
    case Opcode::kInvoke:
    case Opcode::kInvokeClosure:
    case Opcode::kAllocClosure:
      return {field::kCallArgs, field::kCallCount};
    case Opcode::kInvokePacked:
      return {field::kPackedArgs, field::kPackedArity};
    case Opcode::kAllocTensor:
      return {field::kTensorShape, field::kTensorRank};
    case Opcode::kAllocTensorReg:
      return {field::kRegDst + 1};
    case Opcode::kAllocADT:
      return {field::kAdtFields, field::kAdtCount};
    case Opcode::kGetField:
    case Opcode::kReshapeTensor:
      return {3};
    case Opcode::kIf:
    case Opcode::kDeviceCopy:
      return {4};
    case Opcode::kLoadConst:
      return {HasDeviceField(instruction) ? std::size_t{3} : std::size_t{2}};
    case Opcode::kFatal:
      return {0};
    case Opcode::kAllocStorage:
      if (!HasShapeFields(instruction)) return {field::kStorageDstOld + 1};
      return {field::kStorageShape, field::kStorageRank};
  }
  return {0};
}

}  // namespace

Status CheckFieldCount(const RelayInstruction& instruction) {
  const FieldCount expected = Expected(instruction);
  const std::size_t given = instruction.fields.size();
  const std::string_view name = Info(instruction.opcode).mnemonic;
  std::uint64_t listed = 0;
  if (expected.list_count >= 0 && given >= expected.fixed) {
    const std::int64_t count = instruction.fields[static_cast<std::size_t>(expected.list_count)];
    if (count < 0 || static_cast<std::uint64_t>(count) > given) {
      return Malformed(fmt::format("{} counts {} list entries and has {} fields", name, count, given));
    }
    listed = static_cast<std::uint64_t>(count);
  }
  if (given != expected.fixed + listed) {
    return Malformed(fmt::format("{} has {} fields, expected {}", name, given, expected.fixed + listed));
  }
  return {};
}

}  // namespace rewire::tvm
