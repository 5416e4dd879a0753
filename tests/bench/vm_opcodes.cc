// SPDX-License-Identifier: Apache-2.0
// Every opcode. Those that make something replace what they made in the round before, so that its release
// counts too.
#include "rewire/tests/bench/vm_loops.h"

namespace rewire::bench {
namespace {

using Registers = std::vector<std::uint32_t>;
using Dims = std::vector<std::int64_t>;

// Fatal ends a run, so it has no loop: one operation is a run that fails, with its message.
Case FatalCase() {
  Module module;
  Function function;
  function.name = "main";
  CodeWriter code;
  code.Fatal(kNone);
  function.result = SimpleType(TypeKind::kValue);
  function.output_names = {"y"};
  function.register_count = 1;
  function.code = Take(code.Finish());
  module.functions.push_back(std::move(function));
  const auto program = Take(Program::Link(Take(Executable::FromModule(std::move(module)))));
  constexpr int kRuns = 100;
  return {"Fatal (a failed run and its message)", kRuns, [vm = std::make_shared<VirtualMachine>(program)] {
            for (int i = 0; i < kRuns; ++i) {
              Require(!vm->TryInvoke(std::uint32_t{0}), "Fatal did not fail");
            }
          }};
}

}  // namespace

void AddOpcodeCases(std::vector<Case>& cases) {
  AddLoops(
      {
          {"Move", 1, [](CodeWriter& code) { code.Move(kInput, kScratch); }},
          {"Goto", 1,
           [](CodeWriter& code) {
             const CodeWriter::Label next = code.NewLabel();
             code.Goto(next);
             code.Bind(next);
           }},
          {"If", 1,
           [](CodeWriter& code) {
             const CodeWriter::Label next = code.NewLabel();
             code.If(kSeven, kNine, next, next);
             code.Bind(next);
           }},
          {"LoadConst", 1, [](CodeWriter& code) { code.LoadConst(kVectorConstant, kScratch); }},
          {"LoadConsti", 1, [](CodeWriter& code) { code.LoadConsti(1, kScratch); }},
          {"KillRegister (with LoadConst)", 2,
           [](CodeWriter& code) {
             code.LoadConst(kVectorConstant, kScratch);
             code.Kill(kScratch);
           }},
          {"AllocStorage", 1,
           [](CodeWriter& code) { code.AllocStorage(kNone, 64, kFloat32, 0, kScratch, Dims{16}); }},
          {"AllocTensor", 1,
           [](CodeWriter& code) { code.AllocTensor(kStorage, kNone, kFloat32, kScratch, Dims{4}); }},
          {"AllocTensorReg", 1,
           [](CodeWriter& code) { code.AllocTensorReg(kStorage, kNone, kShape, kFloat32, kScratch); }},
          {"ShapeOf", 1, [](CodeWriter& code) { code.ShapeOf(kInput, kScratch); }},
          {"ReshapeTensor", 1, [](CodeWriter& code) { code.ReshapeTensor(kInput, kShape, kScratch); }},
          {"DeviceCopy (host to host, 16 bytes)", 1,
           [](CodeWriter& code) { code.DeviceCopy(kInput, 0, 0, kScratch); }},
          {"AllocADT, 2 fields", 1,
           [](CodeWriter& code) {
             code.AllocADT(0, kScratch, Registers{kInput, kTensor});
           }},
          {"GetField", 1, [](CodeWriter& code) { code.GetField(kPair, 1, kScratch); }},
          {"GetTag", 1, [](CodeWriter& code) { code.GetTag(kPair, kScratch); }},
          {"AllocClosure, 1 captured", 1,
           [](CodeWriter& code) { code.AllocClosure(kIdentity, kScratch, Registers{kInput}); }},
          {"InvokeClosure and Ret", 2,
           [](CodeWriter& code) { code.InvokeClosure(kClosure, kScratch, Registers{}); }},
          {"Invoke and Ret, 2 registers", 2,
           [](CodeWriter& code) { code.Invoke(kIdentity, kScratch, Registers{kInput}); }},
          {"Invoke and Ret, 32 registers", 2,
           [](CodeWriter& code) { code.Invoke(kIdentityOf32Registers, kScratch, Registers{kInput}); }},
      },
      cases);
  cases.push_back(FatalCase());
}

}  // namespace rewire::bench
