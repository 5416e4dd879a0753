// SPDX-License-Identifier: Apache-2.0
// Measures what a host pays around the interpreter: runs, inputs, outputs, VMs.
#include <array>
#include <memory>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/bench/vm_cases.h"
#include "rewire/tests/bench/vm_one_kernel.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::bench {
namespace {

constexpr std::uint32_t kMany = 64;
constexpr int kRounds = 200;

// Takes `count` vectors and returns the first.
Function FirstOf(std::uint32_t count) {
  Function function;
  function.name = "first_of_" + std::to_string(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    function.inputs.push_back({"x" + std::to_string(i), TensorType(kFloat32, {4})});
  }
  function.result = TensorType(kFloat32, {4});
  function.output_names = {"y"};
  function.register_count = count;
  CodeWriter code;
  code.Ret(0);
  function.code = Take(code.Finish());
  return function;
}

// Makes `count` vectors with a kernel each and returns them as a tuple.
Function Outputs(std::uint32_t count) {
  Function function;
  function.name = "outputs";
  const std::vector<std::int64_t> shape = {4};
  CodeWriter code;
  std::vector<std::uint32_t> made;
  for (std::uint32_t i = 0; i < count; ++i) {
    code.AllocStorage(kNone, 64, kFloat32, 0, count, shape);
    code.AllocTensor(count, kNone, kFloat32, i, shape);
    code.InvokePacked(0, 1, kNone, std::vector<std::uint32_t>{i});
    made.push_back(i);
    function.output_names.push_back("y" + std::to_string(i));
  }
  code.AllocADT(0, count, made);
  code.Ret(count);
  function.result = AdtType(0, std::vector<Type>(count, TensorType(kFloat32, {4})));
  function.register_count = count + 1;
  function.code = Take(code.Finish());
  return function;
}

enum : std::uint32_t { kFirstOfOne, kFirstOfMany, kOutputs };

Program MakeProgram() {
  Module module;
  module.kernels.push_back({"empty", "", {}, 0, 0, {}});
  module.functions = {FirstOf(1), FirstOf(kMany), Outputs(kMany)};
  LinkOptions options;
  PackedFunction empty;
  empty.call = EmptyKernel;
  options.kernels.AddFunction("empty", empty);
  return Take(Program::Link(Take(Executable::FromModule(std::move(module))), std::move(options)));
}

// One VM over memory that stays, with every input bound.
struct Host {
  Host() : program(MakeProgram()), vm(program) {
    for (auto& vector : memory) views.emplace_back(vector.data(), std::initializer_list<std::int64_t>{4});
    Require(vm.TrySetInputs(kFirstOfOne, Span<const TensorView>(views.data(), 1)));
    Require(vm.TrySetInputs(kFirstOfMany, views));
  }
  Program program;
  VirtualMachine vm;
  std::array<std::array<float, 4>, kMany> memory{};
  std::vector<TensorView> views;
};

// Runs of the smallest model over one VM's own memory, and through the pool.
struct SmallHost {
  SmallHost() : program(OneKernel()), vm(program), x(Take(Tensor::CopyOf(TensorView(vectors.x, {4})))) {
    Require(vm.TrySetInput("x", TensorView(vectors.x, {4})));
    Require(vm.TrySetOutput("y", TensorView(vectors.y, {4})));
  }
  Vectors vectors;
  Program program;
  VirtualMachine vm;
  Value x;
};

}  // namespace

void AddHostCases(std::vector<Case>& cases) {
  const auto host = std::make_shared<Host>();
  const auto add = [&cases](const char* name, int operations, auto once, std::optional<Target> target = {}) {
    cases.push_back({name, static_cast<double>(kRounds) * operations,
                     [once] {
                       for (int i = 0; i < kRounds; ++i) once();
                     },
                     target});
  };
  const auto in_direct_calls = [](double most) { return Target{Target::kDirectCalls, most}; };
  add(
      "run of a function that returns its input", 1,
      [host] { Require(host->vm.TryInvoke(std::uint32_t{kFirstOfOne})); }, in_direct_calls(20));
  const auto small = std::make_shared<SmallHost>();
  add("run of one kernel, input and output bound", 1,
      [small] { Require(small->vm.TryInvoke(std::uint32_t{0})); });
  add(
      "Program::TryRun of one kernel", 1,
      [small] {
        Require(small->program.TryRun("main", Span<const Value>(&small->x, 1)).has_value(), "a run failed");
      },
      in_direct_calls(110));
  add("run with 64 bound inputs", 1, [host] { Require(host->vm.TryInvoke(std::uint32_t{kFirstOfMany})); });
  add(
      "TrySetInputs of 64, each", kMany,
      [host] { Require(host->vm.TrySetInputs(kFirstOfMany, host->views)); }, in_direct_calls(15));
  // In a VM of its own: bound outputs would be part of the runs above.
  add(
      "TrySetOutput of 64, each", kMany,
      [host, vm = std::make_shared<VirtualMachine>(host->program)] {
        for (std::uint32_t i = 0; i < kMany; ++i) {
          Require(vm->TrySetOutput(OutputHandle{kOutputs, i}, host->views[i]));
        }
      },
      in_direct_calls(15));
  add("make a VM and destroy it", 1, [host] { const VirtualMachine vm(host->program); });
}

}  // namespace rewire::bench
