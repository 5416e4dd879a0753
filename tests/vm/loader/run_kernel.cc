// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/loader/run_kernel.h"

#include <catch2/catch.hpp>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/executable.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

Result<std::int64_t> RunKernel(const KernelSet& kernels, const std::string& name,
                               const std::vector<std::int64_t>& args, std::shared_ptr<ThreadPool> threads,
                               const Limits& limits, int calls) {
  CodeWriter code;
  std::vector<std::uint32_t> registers;
  for (std::int64_t arg : args) {
    registers.push_back(static_cast<std::uint32_t>(registers.size()));
    code.LoadConsti(arg, registers.back());
  }
  const auto result = static_cast<std::uint32_t>(args.size());
  code.InvokePacked(0, 0, result, registers);
  code.Ret(result);

  Module module;
  module.kernels.resize(1);
  module.kernels[0].name = name;
  module.kernels[0].flags = kKernelObjects;  // integers stay integers
  Function& function = module.functions.emplace_back();
  function.name = "main";
  function.result = SimpleType(TypeKind::kValue);
  function.output_names = {"result"};
  function.register_count = result + 1;
  function.code = *code.Finish();

  const Result<Executable> executable = Executable::FromModule(std::move(module));
  if (!executable) return Forward(executable);
  LinkOptions options;
  options.kernels = kernels;
  options.threads = std::move(threads);
  const Result<Program> program = Program::Link(*executable, options);
  if (!program) return Forward(program);
  VirtualMachine vm(*program, limits);
  for (int i = 0; i < calls; ++i) {
    if (Status status = vm.TryInvoke("main"); !status) return Forward(status);
  }
  return vm.result().integer();
}

std::string TestLibrary(const std::string& name) {
  return std::string(BuildDir()) + "/tests/libraries/" + name + ".so";
}

KernelSet Load(const std::string& library) {
  KernelSet kernels;
  const Status status = kernels.AddLibrary(TestLibrary(library));
  INFO(MessageOf(status));
  REQUIRE(status);
  return kernels;
}

}  // namespace rewire::test
