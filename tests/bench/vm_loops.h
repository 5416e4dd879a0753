// SPDX-License-Identifier: Apache-2.0
// Endless loops of one piece of code, stopped by the step limit: what an instruction costs inside the
// interpreter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/bench/vm_cases.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::bench {

// The registers that every loop finds; scratch registers from kScratch up to kRegisters start undefined.
enum LoopRegister : std::uint32_t {
  kInput,    // f32[4], the function's input
  kStorage,  // 64 bytes
  kTensor,   // f32[4] on kStorage
  kSeven,    // integer
  kNine,     // integer
  kShape,    // i64[1], {4}
  kPair,     // ADT of kInput twice
  kClosure,  // kIdentity with kInput captured
  kScratch,
  kRegisters = 32,
};
enum LoopConstant : std::uint32_t { kVectorConstant, kSizeConstant, kShapeConstant };
// Functions of the module that loops call: each returns its only input. The loops follow.
enum LoopCallee : std::uint32_t { kIdentity, kIdentityOf32Registers, kFirstLoop };

struct Loop {
  std::string name;
  int instructions;  // executed by one `body`, callees included
  void (*body)(CodeWriter& code);
  std::optional<Target> target = std::nullopt;
};

// Two LoadConst, AllocStorage, AllocTensor, InvokePacked with three tensors, KillRegister: what a compiler
// makes of one operator.
Loop TypicalOp();

// A program of loops over one input, which is bound. A VM of one's own for each thread.
class LoopProgram {
 public:
  explicit LoopProgram(const std::vector<Loop>& loops);
  VirtualMachine MakeVm();
  // Runs loop `index` for `steps` instructions.
  static void Run(VirtualMachine& vm, std::uint32_t index, std::uint64_t steps);
  // How often the body of loop `index` is done in `steps` instructions.
  double Operations(std::uint32_t index, std::uint64_t steps) const;

 private:
  std::vector<int> instructions_;
  std::optional<Program> program_;
  float input_[4] = {1, 2, 3, 4};
};

void AddLoops(const std::vector<Loop>& loops, std::vector<Case>& cases);

}  // namespace rewire::bench
