// SPDX-License-Identifier: Apache-2.0
// Machines over much data: what one costs must not depend on how large the parameters are.
#include "rewire/tests/bench/vm_parameters.h"

#include <malloc.h>
#include <sys/mman.h>

#include <memory>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::bench {
namespace {

constexpr std::size_t kParameters = 64;
constexpr std::size_t kParameterBytes = std::size_t{16} << 20;  // a gigabyte together

// Address space that nobody reads takes no memory, and the Program must not care.
std::shared_ptr<void> Gigabyte() {
  constexpr std::size_t kBytes = kParameters * kParameterBytes;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Require(memory != MAP_FAILED, "a gigabyte of address space cannot be had");
  return {memory, [](void* start) { ::munmap(start, kBytes); }};
}

Program ProgramOverGigabyte() {
  Module module;
  ParameterSet set;
  const std::shared_ptr<void> memory = Gigabyte();
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(kParameterBytes)};
  for (std::size_t i = 0; i < kParameters; ++i) {
    Constant constant;
    constant.kind = ConstantKind::kParameter;
    constant.name = "w" + std::to_string(i);
    constant.type = TensorType(kUInt8, {shape[0]}).nodes[0];
    module.constants.push_back(constant);
    char* const start = static_cast<char*>(memory.get()) + i * kParameterBytes;
    set.Set(constant.name, Take(Tensor::Wrap(TensorView(start, kUInt8, shape), memory)));
  }
  CodeWriter code;
  code.LoadConst(0, 0);
  code.Ret(0);
  Function function;
  function.name = "main";
  function.result = TensorType(kUInt8, {shape[0]});
  function.output_names = {"y"};
  function.register_count = 1;
  function.code = Take(code.Finish());
  module.functions.push_back(std::move(function));
  LinkOptions options;
  options.parameters = {set};
  return Take(Program::Link(Take(Executable::FromModule(std::move(module))), std::move(options)));
}

std::size_t HeapBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

void AddParameterCases(std::vector<Case>& cases) {
  const Program program = ProgramOverGigabyte();
  cases.push_back({"make a VM over 1 GB of parameters, and destroy it", 1,
                   [program] { const VirtualMachine vm(program); }, Target{Target::kNanoseconds, 1000}});
}

std::size_t MeasureVmBytes() {
  const Program program = ProgramOverGigabyte();
  // Many at once: what the C library had in its caches does not count then.
  constexpr std::size_t kMachines = 1000;
  std::vector<VirtualMachine> machines;
  machines.reserve(kMachines);
  const std::size_t before = HeapBytes();
  for (std::size_t i = 0; i < kMachines; ++i) machines.emplace_back(program);
  return (HeapBytes() - before) / kMachines;
}

}  // namespace rewire::bench
