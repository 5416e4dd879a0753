// SPDX-License-Identifier: Apache-2.0
// Runs the text programs: every function on VMs of its own and on one that has run all others, with memory
// undefined, zeroed and poisoned, with and without an observer, from the module as assembled, from a file's
// bytes and linked in.
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/linked/linked_copy.h"
#include "rewire/tests/programs/program_file.h"
#include "rewire/tests/programs/test_kernels.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

std::vector<ProgramFile> Files() {
  Result<std::vector<ProgramFile>> files = ReadProgramFiles();
  if (!files) FAIL(files.error().message());
  return std::move(*files);
}

Program Linked(const Executable& executable, StorageFill fill) {
  LinkOptions options;
  options.kernels = TestKernels();
  options.stock_kernels = false;
  options.storage_fill = fill;
  Result<Program> program = Program::Link(executable, options);
  if (!program) FAIL(program.error().message());
  return *program;
}

// Sees every instruction, so that the loop that tells observers runs too.
class Counter : public Observer {
 public:
  bool wants_instructions() const override { return true; }
  bool wants_kernels() const override { return true; }
  void OnInstruction(const Instruction& instruction) override {
    ++count_;
    text_size_ += ShortInstructionText(instruction.module, instruction.module.functions[instruction.function],
                                       instruction.pc)
                      .size();
  }
  std::size_t count() const { return count_; }

 private:
  std::size_t count_ = 0;
  std::size_t text_size_ = 0;
};

// The outcome of a run, as a `; fails:` line says it; "ok" for success.
std::string Outcome(VirtualMachine& vm, const ProgramCase& c) {
  vm.SetLimits(c.limits);
  const Status status = vm.TryInvoke(c.function);
  if (status) return "ok";
  return std::string(StatusCodeName(status.error().code())) + ": " + status.error().message();
}

// The outcome with every number that the message leaves open, "<n>", put as "<n>".
std::string WithoutOpenNumbers(std::string outcome, const std::string& message) {
  constexpr std::string_view kOpen = "<n>";
  for (std::size_t open = message.find(kOpen); open != std::string::npos;
       open = message.find(kOpen, open + 1)) {
    std::size_t end = open;
    while (end < outcome.size() && std::isdigit(static_cast<unsigned char>(outcome[end])) != 0) ++end;
    if (end > open) outcome.replace(open, end - open, kOpen);
  }
  return outcome;
}

// No run of a new VM passes the bound of a function's memory, and one in a block of that size
// succeeds.
TEST_CASE("runs keep to the bound of their memory") {
  std::size_t bounded = 0;
  for (const ProgramFile& file : Files()) {
    const Result<Executable> executable = Executable::FromModule(file.module);
    REQUIRE(executable);
    const Program program = Linked(*executable, StorageFill::kUndefined);
    for (const ProgramCase& c : file.cases) {
      const Result<MemoryBound> bound = program.TryMemoryBound(c.function);
      REQUIRE(bound);
      if (!bound->bounded()) continue;
      CAPTURE(file.name, c.function);
      ++bounded;
      VirtualMachine vm(program, c.limits);
      const bool ok = vm.TryInvoke(c.function).has_value();
      CHECK(vm.bytes_peak() <= bound->bytes);
      if (!ok) continue;
      std::vector<unsigned char> memory(bound->static_bytes + 128);
      VmOptions options;
      options.limits = c.limits;
      options.memory = {memory.data() + (128 - reinterpret_cast<std::uintptr_t>(memory.data()) % 128),
                        bound->static_bytes};
      CHECK(VirtualMachine::Make(program, options).TryInvoke(c.function).has_value());
    }
  }
  CHECK(bounded >= 40);
}

void Check(VirtualMachine& vm, const ProgramCase& c) {
  INFO(c.function);
  const std::string expected = c.fails ? c.message : "ok";
  CHECK(WithoutOpenNumbers(Outcome(vm, c), expected) == expected);
}

void CheckProgram(const Program& program, const std::vector<ProgramCase>& cases) {
  for (const ProgramCase& c : cases) {
    VirtualMachine vm(program);
    Check(vm, c);
    Check(vm, c);
  }
  // One VM for all, in both orders: a failure must not show in what runs after it, nor leave memory behind.
  VirtualMachine shared(program);
  for (const auto& c : cases) Check(shared, c);
  shared.Trim();
  const std::uint64_t held = shared.bytes_held();
  for (auto c = cases.rbegin(); c != cases.rend(); ++c) Check(shared, *c);
  shared.Trim();
  CHECK(shared.bytes_held() == held);

  Counter counter;
  shared.SetObserver(&counter);
  for (const ProgramCase& c : cases) Check(shared, c);
  CHECK(counter.count() >= cases.size());
}

TEST_CASE("every text program does what it says") {
  for (const ProgramFile& file : Files()) {
    INFO(file.name);
    const Result<Executable> executable = Executable::FromModule(file.module);
    if (!executable) FAIL(executable.error().message());
    const Result<std::vector<std::byte>> bytes = SerializeModule(file.module);
    if (!bytes) FAIL(bytes.error().message());
    const Result<Executable> read = Executable::FromBytes(CopyBytes(*bytes));
    if (!read) FAIL(read.error().message());
    const LinkedCopy linked(*read);
    for (const Executable& source : {*executable, *read, linked.Open()}) {
      for (const StorageFill fill : {StorageFill::kUndefined, StorageFill::kZero, StorageFill::kPoison}) {
        CheckProgram(Linked(source, fill), file.cases);
      }
    }
  }
}

// "fail_x@12 (...": the instruction that failed, or null.
const OpcodeInfo* FailedInstruction(const Module& module, const ProgramCase& c) {
  for (const Function& function : module.functions) {
    const std::string prefix = ": " + function.name + "@";
    const std::size_t found = c.message.find(prefix);
    if (found == std::string::npos) continue;
    const std::size_t pc = std::stoul(c.message.substr(found + prefix.size()));
    return pc < function.code.size() ? &Info(OpcodeOf(function.code[pc])) : nullptr;
  }
  return nullptr;
}

bool Uses(const Module& module, const std::string& function_name, Opcode opcode) {
  for (const Function& function : module.functions) {
    if (function.name != function_name) continue;
    for (std::size_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      if (OpcodeOf(function.code[pc]) == opcode) return true;
    }
  }
  return false;
}

TEST_CASE("every opcode has programs that use it and programs that fail at it") {
  const std::vector<ProgramFile> files = Files();
  for (const OpcodeInfo& info : kOpcodes) {
    INFO(info.mnemonic);
    bool used = false;
    bool failed = false;
    for (const ProgramFile& file : files) {
      if (file.name != "ops/" + std::string(info.mnemonic)) continue;
      for (const ProgramCase& c : file.cases) {
        used = used || (!c.fails && Uses(file.module, c.function, info.opcode));
        failed = failed || (c.fails && FailedInstruction(file.module, c) == &info);
      }
    }
    // An instruction that cannot end well has nothing to succeed at.
    CHECK((used || info.opcode == Opcode::kFatal));
    CHECK(failed);
  }
}

}  // namespace
}  // namespace rewire::test
