// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/aot/kernel_cases.h"

#include "rewire/executable_format/text/assembler.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

std::string ShapeOf(const Dims& dims) {
  std::string text = "[";
  for (const std::int64_t dim : dims) text += (text == "[" ? "" : ", ") + std::to_string(dim);
  return text + "]";
}
std::string Float(const Dims& dims) { return "f32" + ShapeOf(dims); }
std::string TypeOf(const Tensor& tensor) {
  return DTypeName(tensor.view().dtype()) + ShapeOf(Dims(tensor.shape().begin(), tensor.shape().end()));
}

Tensor Maybe(Random& random, const Tensor& tensor, DLDataType dtype) {
  const std::int64_t nothing = 0;
  return random.Bool() ? tensor : *Tensor::Make(dtype, {&nothing, 1});
}

std::string AxisOf(Random& random, std::size_t rank, std::int64_t* axis) {
  *axis = random.Int(0, static_cast<int>(rank) - 1);
  const std::int64_t said = random.Bool() ? *axis : *axis - static_cast<std::int64_t>(rank);
  return "axis=" + std::to_string(said);
}

std::string ProgramText(const std::string& kernel, const Case& call, std::size_t result) {
  std::string inputs;
  std::string arguments;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    inputs += (i == 0 ? "" : ", ") + ("x" + std::to_string(i)) + ": " + TypeOf(call.inputs[i]);
    arguments += "%x" + std::to_string(i) + ", ";
  }
  std::string made;
  std::string constants;
  if (call.last_integer) {
    constants = ".const last: i64[1] = {" + std::to_string(*call.last_integer) + "}\n";
    made = "  %last = load_const last\n";
    arguments += "%last, ";
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const std::string place = std::to_string(i);
    made += "  %s" + place + " = alloc_storage _, alignment=64, " + call.outputs[i] + ", cpu\n  %y" + place +
            " = alloc_tensor %s" + place + ", _, " + call.outputs[i] + "\n";
    arguments += (i == 0 ? "%y" : ", %y") + place;
  }
  return constants + ".kernel k = \"" + kernel + "\"" +
         (call.attributes.empty() ? "" : " {" + call.attributes + "}") + "\n.func main(" + inputs +
         ") -> y: " + call.outputs[result] + "\n" + made + "  invoke_packed k(" + arguments +
         "), outputs=" + std::to_string(call.outputs.size()) + "\n  ret %y" + std::to_string(result) +
         "\n.end\n";
}

Executable Assembled(const std::string& text) {
  INFO(text);
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  return *std::move(executable);
}

Tensor RunInVm(const Executable& executable, const std::vector<Tensor>& inputs) {
  const Result<Program> program = Program::Link(executable);
  if (!program) FAIL(program.error().message());
  std::vector<Value> values(inputs.begin(), inputs.end());
  Result<Value> result = VirtualMachine(*program).TryInvoke("main", {values.data(), values.size()});
  if (!result) FAIL(result.error().message());
  return result->tensor();
}

}  // namespace rewire::test
