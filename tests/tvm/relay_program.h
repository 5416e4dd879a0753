// SPDX-License-Identifier: Apache-2.0
// Relay VM executables written by hand, imported, and linked with kernels of this process: what a compiler
// would not write, and TVM's VM does wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/vm/vm.h"

namespace rewire::test {

// Opcodes of TVM's VM.
enum : std::int64_t {
  kMove = 0,
  kRet = 1,
  kInvoke = 2,
  kInvokePacked = 4,
  kAllocTensor = 5,
  kAllocTensorReg = 6,
  kAllocAdt = 7,
  kGetField = 9,
  kIf = 10,
  kLoadConst = 11,
  kGoto = 12,
  kLoadConsti = 14,
  kFatal = 15,
  kAllocStorage = 16,
  kShapeOf = 17,
  kReshape = 18,
};

// Kernels of tests/vm/outputs/output_harness.h, by the index that InvokePacked has.
enum : std::int64_t { kInc = 0, kAdd = 1, kFillOne = 2 };

// Constants that every program has.
enum : std::int64_t { kZero = 0, kShape3x2 = 1, kNumbers = 2 };

using Code = std::vector<tvm::RelayWords>;

// Makes a float tensor in register `dst`. Uses registers 60 and 61.
Code MakeTensor(std::int64_t dst, const std::vector<std::int64_t>& shape);
// Calls a kernel that writes its last argument.
tvm::RelayWords Call(std::int64_t kernel, const std::vector<std::int64_t>& arguments);
// The parts in one.
Code Join(const std::vector<Code>& parts);

// A file with functions and the tables above; {1, 2, 3, 4, 5, 6} is kNumbers, of shape [6].
tvm::RelaySpec RelayOf(const std::vector<tvm::RelayFunctionSpec>& functions);
tvm::RelayFunctionSpec FunctionOf(const std::string& name, std::vector<std::string> parameters, Code code);

// Imports, verifies and links; the test fails with the message when a step does.
Program LinkRelay(const tvm::RelaySpec& spec);
Program LinkRelay(std::vector<std::string> parameters, Code code);

}  // namespace rewire::test
