// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/bench/vm_one_kernel.h"

#include <utility>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/bench/vm_cases.h"

namespace rewire::bench {

Program OneKernel() {
  const std::vector<std::int64_t> shape = {4};
  const Type vector = TensorType(kFloat32, {4});
  CodeWriter code;
  code.AllocStorage(kNone, 64, kFloat32, 0, 1, shape);
  code.AllocTensor(1, kNone, kFloat32, 2, shape);
  code.InvokePacked(0, 1, kNone, std::vector<std::uint32_t>{0, 2});
  code.Ret(2);
  Function function;
  function.name = "main";
  function.inputs = {{"x", vector}};
  function.result = vector;
  function.output_names = {"y"};
  function.register_count = 3;
  function.code = Take(code.Finish());
  Module module;
  module.kernels.push_back({"empty", "", {}, 0, 0, {}});
  module.functions = {std::move(function)};
  LinkOptions options;
  PackedFunction empty;
  empty.call = EmptyKernel;
  options.kernels.AddFunction("empty", empty);
  return Take(Program::Link(Take(Executable::FromModule(std::move(module))), std::move(options)));
}

}  // namespace rewire::bench
