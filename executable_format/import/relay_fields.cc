// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/relay_fields.h"

#include <fmt/format.h>

#include <iterator>

#include "rewire/executable_format/import/stream.h"

namespace rewire::tvm {
namespace {

constexpr int kNoList = -1;

struct RelayRow {
  RelayOpcode opcode;
  const char* name;
  std::size_t fixed;         // fields that every instruction has
  int list_count = kNoList;  // the field that counts the list behind them
};

// By opcode. Two have a longer form since TVM 0.14, which Expected knows.
constexpr RelayRow kRows[] = {
    {RelayOpcode::kMove, "move", 2},
    {RelayOpcode::kRet, "ret", 1},
    {RelayOpcode::kInvoke, "invoke", field::kCallArgs, field::kCallCount},
    {RelayOpcode::kInvokeClosure, "invoke_closure", field::kCallArgs, field::kCallCount},
    {RelayOpcode::kInvokePacked, "invoke_packed", field::kPackedArgs, field::kPackedArity},
    {RelayOpcode::kAllocTensor, "alloc_tensor", field::kTensorShape, field::kTensorRank},
    {RelayOpcode::kAllocTensorReg, "alloc_tensor_reg", field::kRegDst + 1},
    {RelayOpcode::kAllocADT, "alloc_adt", field::kAdtFields, field::kAdtCount},
    {RelayOpcode::kAllocClosure, "alloc_closure", field::kCallArgs, field::kCallCount},
    {RelayOpcode::kGetField, "get_field", 3},
    {RelayOpcode::kIf, "if", 4},
    {RelayOpcode::kLoadConst, "load_const", 2},
    {RelayOpcode::kGoto, "goto", 1},
    {RelayOpcode::kGetTag, "get_tag", 2},
    {RelayOpcode::kLoadConsti, "load_consti", 2},
    {RelayOpcode::kFatal, "fatal", 0},
    {RelayOpcode::kAllocStorage, "alloc_storage", field::kStorageDstOld + 1},
    {RelayOpcode::kShapeOf, "shape_of", 2},
    {RelayOpcode::kReshapeTensor, "reshape_tensor", 3},
    {RelayOpcode::kDeviceCopy, "device_copy", 4},
    {RelayOpcode::kKillRegister, "kill", 1},
};

consteval bool EachOpcodeHasItsRow() {
  for (std::size_t code = 0; code < std::size(kRows); ++code) {
    if (static_cast<std::size_t>(kRows[code].opcode) != code) return false;
  }
  return std::size(kRows) == kRelayOpcodes;
}
static_assert(EachOpcodeHasItsRow(), "row i is of opcode i, and no opcode is left out");

constexpr const RelayRow& RowOf(RelayOpcode opcode) { return kRows[static_cast<std::size_t>(opcode)]; }

RelayRow Expected(const RelayInstruction& instruction) {
  RelayRow row = RowOf(instruction.opcode);
  if (row.opcode == RelayOpcode::kLoadConst && HasDeviceField(instruction)) row.fixed = 3;
  if (row.opcode == RelayOpcode::kAllocStorage && HasShapeFields(instruction)) {
    row.fixed = field::kStorageShape;
    row.list_count = field::kStorageRank;
  }
  return row;
}

}  // namespace

const char* RelayName(RelayOpcode opcode) { return RowOf(opcode).name; }

Status CheckFieldCount(const RelayInstruction& instruction) {
  const RelayRow expected = Expected(instruction);
  const std::size_t given = instruction.fields.size();
  const char* name = expected.name;
  std::uint64_t listed = 0;
  if (expected.list_count != kNoList && given >= expected.fixed) {
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
