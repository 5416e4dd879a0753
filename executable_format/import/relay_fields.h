// SPDX-License-Identifier: Apache-2.0
//
// The positions of the fields of a Relay instruction: one row per opcode. No other code knows the order.
#pragma once

#include <cstdint>

#include "rewire/base/status.h"
#include "rewire/executable_format/import/relay_file.h"

namespace rewire::tvm {

// Fields by position, after hash and opcode. A list stands last and its count is one of the fixed fields.
namespace field {
enum Move { kMoveFrom, kMoveDst };
enum Invoke { kCallee, kCallCount, kCallDst, kCallArgs };  // also InvokeClosure and AllocClosure
enum InvokePacked { kPackedIndex, kPackedArity, kPackedOutputs, kPackedArgs };
enum AllocTensor {
  kTensorStorage,
  kTensorOffset,
  kTensorCode,
  kTensorBits,
  kTensorLanes,
  kTensorRank,
  kTensorDst,
  kTensorShape
};
enum AllocTensorReg { kRegStorage, kRegOffset, kRegShape, kRegCode, kRegBits, kRegLanes, kRegDst };
enum AllocADT { kAdtTag, kAdtCount, kAdtDst, kAdtFields };
enum GetField { kFieldObject, kFieldIndex, kFieldDst };
enum If { kIfTest, kIfTarget, kIfTrue, kIfFalse };
// AllocStorage has two forms; the first six fields are common.
enum AllocStorage {
  kStorageSize,
  kStorageAlignment,
  kStorageCode,
  kStorageBits,
  kStorageLanes,
  kStorageDevice,
  kStorageDstOld,
  kStorageRank = kStorageDstOld,
  kStorageDst,
  kStorageShape
};
enum DeviceCopy { kCopySrc, kCopySrcDevice, kCopyDstDevice, kCopyDst };
}  // namespace field

// LoadConst is (constant, dst) up to TVM 0.13 and (constant, device, dst) after it; AllocStorage has 7 fields
// up to 0.13, then a rank and a shape.
inline bool HasDeviceField(const RelayInstruction& load_const) { return load_const.fields.size() == 3; }
inline bool HasShapeFields(const RelayInstruction& alloc_storage) { return alloc_storage.fields.size() > 7; }

// How messages name the opcode: as Rewire's text spells the instruction that it becomes.
const char* RelayName(RelayOpcode opcode);

// Checks that the instruction has as many fields as its opcode, and the count among them, require.
Status CheckFieldCount(const RelayInstruction& instruction);

// Calls visit(std::int64_t&) for each field that names a device.
template <typename Visit>
void ForEachDeviceField(RelayInstruction& instruction, Visit&& visit) {
  if (instruction.opcode == RelayOpcode::kAllocStorage) visit(instruction.fields[field::kStorageDevice]);
  if (instruction.opcode == RelayOpcode::kDeviceCopy) {
    visit(instruction.fields[field::kCopySrcDevice]);
    visit(instruction.fields[field::kCopyDstDevice]);
  }
}

}  // namespace rewire::tvm
