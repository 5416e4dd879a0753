// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/bench/vm_loops.h"

#include <cstring>
#include <utility>

#include "rewire/base/array.h"

namespace rewire::bench {
namespace {

constexpr int kBodies = 64;  // in one round: the jump back does not count
constexpr std::uint64_t kSteps = 100'000;

Constant DataConstant(const char* name, DLDataType dtype, Array<Dim> dims, const void* data,
                      std::size_t bytes) {
  Constant constant;
  constant.name = name;
  constant.type = TensorType(dtype, std::move(dims)).nodes[0];
  constant.raw_bytes = bytes;
  constant.stored.view = {static_cast<const std::byte*>(data), bytes};
  return constant;
}

Function VectorFunction(const std::string& name, std::uint32_t registers, CodeWriter& code) {
  const Type vector = TensorType(kFloat32, {4});
  Function function;
  function.name = name;
  function.inputs = {{"x", vector}};
  function.result = vector;
  function.output_names = {"y"};
  function.register_count = registers;
  function.code = Take(code.Finish());
  return function;
}

Function LoopFunction(const Loop& loop) {
  CodeWriter code;
  code.AllocStorage(kNone, 64, kFloat32, 0, kStorage, std::vector<std::int64_t>{16});
  code.AllocTensor(kStorage, kNone, kFloat32, kTensor, std::vector<std::int64_t>{4});
  code.LoadConsti(7, kSeven);
  code.LoadConsti(9, kNine);
  code.LoadConst(kShapeConstant, kShape);
  code.AllocADT(0, kPair, std::vector<std::uint32_t>{kInput, kInput});
  code.AllocClosure(kIdentity, kClosure, std::vector<std::uint32_t>{kInput});
  const CodeWriter::Label again = code.NewLabel();
  code.Bind(again);
  for (int i = 0; i < kBodies; ++i) loop.body(code);
  code.Goto(again);
  return VectorFunction(loop.name, kRegisters, code);
}

}  // namespace

LoopProgram::LoopProgram(const std::vector<Loop>& loops) {
  static constexpr float kVector[] = {1, 2, 3, 4};
  static constexpr std::int64_t kSize = sizeof(kVector);
  static constexpr std::int64_t kFour[] = {4};
  Module module;
  module.kernels.push_back({"empty", "", {}, 0, 0, {}});
  module.constants = {DataConstant("vector", kFloat32, {4}, kVector, sizeof(kVector)),
                      DataConstant("size", kInt64, {}, &kSize, sizeof(kSize)),
                      DataConstant("shape", kInt64, {1}, kFour, sizeof(kFour))};
  for (const std::uint32_t registers : {2U, 32U}) {
    CodeWriter code;
    code.Ret(0);
    module.functions.push_back(VectorFunction("identity" + std::to_string(registers), registers, code));
  }
  for (const Loop& loop : loops) {
    module.functions.push_back(LoopFunction(loop));
    instructions_.push_back(loop.instructions);
  }
  LinkOptions options;
  PackedFunction empty;
  empty.call = EmptyKernel;
  options.kernels.AddFunction("empty", empty);
  program_ = Take(Program::Link(Take(Executable::FromModule(std::move(module))), std::move(options)));
}

VirtualMachine LoopProgram::MakeVm() {
  VirtualMachine vm(*program_);
  for (std::uint32_t i = 0; i < instructions_.size(); ++i) {
    Require(vm.TrySetInput(InputHandle{kFirstLoop + i, 0}, TensorView(input_, {4})));
  }
  return vm;
}

void LoopProgram::Run(VirtualMachine& vm, std::uint32_t index, std::uint64_t steps) {
  Limits limits;
  limits.steps = steps;
  vm.SetLimits(limits);
  const Status status = vm.TryInvoke(kFirstLoop + index);
  Require(!status, "an endless loop ended");
  if (status.error().code() != StatusCode::kStepLimit) Die(status.error().message());
}

double LoopProgram::Operations(std::uint32_t index, std::uint64_t steps) const {
  return static_cast<double>(steps) * kBodies / (instructions_[index] * kBodies + 1);
}

Loop TypicalOp() {
  return {"typical op", 6,
          [](CodeWriter& code) {
            enum : std::uint32_t { kWeights = kScratch, kSize, kMemory, kResult };
            code.LoadConst(kVectorConstant, kWeights);
            code.LoadConst(kSizeConstant, kSize);
            code.AllocStorage(kSize, 64, kFloat32, 0, kMemory, {});
            code.AllocTensor(kMemory, kNone, kFloat32, kResult, std::vector<std::int64_t>{4});
            code.InvokePacked(0, 1, kNone, std::vector<std::uint32_t>{kWeights, kInput, kResult});
            code.Kill(kResult);
          },
          Target{Target::kDirectCalls, 14}};
}

void AddLoops(const std::vector<Loop>& loops, std::vector<Case>& cases) {
  const auto program = std::make_shared<LoopProgram>(loops);
  const auto vm = std::make_shared<VirtualMachine>(program->MakeVm());
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    cases.push_back({loops[i].name, program->Operations(i, kSteps),
                     [program, vm, i] { LoopProgram::Run(*vm, i, kSteps); }, loops[i].target});
  }
}

}  // namespace rewire::bench
