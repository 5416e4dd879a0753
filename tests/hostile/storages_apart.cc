// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/storages_apart.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/hostile/program.h"

namespace rewire::hostile {
namespace {

constexpr std::int64_t kNoRegister = 0xFFFFFFFF;
constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kUInt8 = 0x10801;
// For a shape that only the run knows. A larger one fails there, and then nothing is said of the program.
constexpr std::int64_t kLargestTensor = 1 << 20;

Operand Number(char kind, std::int64_t value) {
  Operand operand;
  operand.kind = kind;
  operand.value = value;
  return operand;
}

// alloc_storage _, alignment=64, dtype[dims], cpu
Instruction StorageOf(std::int64_t dtype, std::vector<std::int64_t> dims, std::int64_t dst) {
  Operand shape = Number('D', 0);
  shape.list = std::move(dims);
  Instruction instruction;
  instruction.op = kAllocStorage;
  instruction.operands = {Number('o', kNoRegister), Number('i', kAlignment), Number('d', dtype),
                          Number('e', 0),           Number('w', dst),        std::move(shape)};
  return instruction;
}

// Each allocation of a tensor gets a storage just before it. Jumps to it go to the storage.
void Separate(Function* function) {
  std::vector<Instruction> code;
  std::vector<std::int64_t> moved_to;
  const auto storage = static_cast<std::int64_t>(function->registers);
  for (Instruction& instruction : function->code) {
    moved_to.push_back(static_cast<std::int64_t>(code.size()));
    if (instruction.op == kAllocTensor || instruction.op == kAllocTensorReg) {
      const bool is_static = instruction.op == kAllocTensor;
      code.push_back(is_static
                         ? StorageOf(instruction.operands[2].value, instruction.operands[4].list, storage)
                         : StorageOf(kUInt8, {kLargestTensor}, storage));
      instruction.operands[0].value = storage;
      instruction.operands[1].value = kNoRegister;
    }
    code.push_back(std::move(instruction));
  }
  for (Instruction& instruction : code) {
    for (Operand& operand : instruction.operands) {
      if (operand.kind == 't' && !operand.raw)
        operand.value = moved_to[static_cast<std::size_t>(operand.value)];
    }
  }
  ++function->registers;
  function->code = std::move(code);
  function->notes.clear();  // they name words
}

}  // namespace

Result<Executable> StoragesApart(const Module& module) {
  const Result<std::vector<std::byte>> written = SerializeModule(module);
  if (!written) return Forward(written);
  std::optional<Program> program =
      ParseFile({reinterpret_cast<const char*>(written->data()), written->size()});
  if (!program) return Fail(StatusCode::kInternal, "what the library writes cannot be parsed");
  for (Function& function : program->functions) Separate(&function);
  const auto file = std::make_shared<const Bytes>(WriteFile(*program));
  const auto* data = reinterpret_cast<const std::byte*>(file->data());
  Result<Module> apart = ReadModule({{data, file->size()}, file}, {});
  if (!apart) return Forward(apart);
  return Executable::FromModule(*std::move(apart));
}

}  // namespace rewire::hostile
