// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/link_cost/growing_modules.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

const Type kTensor4 = TensorType(kFloat32, {4});

std::string Numbered(const char* name, std::uint32_t i) { return name + std::to_string(i); }

// A function without inputs and with one output.
Function MakeFunction(std::string name, Type result, std::uint32_t registers, CodeWriter* code) {
  Function function;
  function.name = std::move(name);
  function.result = std::move(result);
  const std::size_t leaves = Leaves(function.result).size();
  for (std::uint32_t i = 0; i < leaves; ++i) function.output_names.push_back(Numbered("y", i));
  function.register_count = registers;
  function.code = *code->Finish();
  return function;
}

Module WithKernel(Array<std::uint32_t> also_written = {}) {
  Module module;
  KernelImport fill;
  fill.name = "host.fill";
  fill.also_written = std::move(also_written);
  module.kernels.push_back(std::move(fill));
  return module;
}

Module OfMain(Module module, Type result, std::uint32_t registers, CodeWriter* code) {
  module.functions.push_back(MakeFunction("main", std::move(result), registers, code));
  return module;
}

// A tensor in `dst` on the storage in `storage`.
void Alloc(CodeWriter* code, std::uint32_t storage, std::uint32_t dst) {
  code->AllocTensor(storage, kNone, kFloat32, dst, std::vector<std::int64_t>{4});
}
void AllocStorage(CodeWriter* code, std::uint32_t dst) {
  code->AllocStorage(kNone, 64, kFloat32, 0, dst, std::vector<std::int64_t>{4});
}
// The same, written at once.
void Make(CodeWriter* code, std::uint32_t storage, std::uint32_t dst) {
  Alloc(code, storage, dst);
  code->InvokePacked(0, 1, kNone, std::vector<std::uint32_t>{dst});
}
// A tensor in register 0 that nothing stands in the way of, returned.
void ReturnNew(CodeWriter* code, std::uint32_t storage = 1) {
  AllocStorage(code, storage);
  Make(code, storage, 0);
  code->Ret(0);
}

std::vector<std::uint32_t> Registers(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> registers(count);
  std::iota(registers.begin(), registers.end(), first);
  return registers;
}

Module Constants(std::uint32_t n) {
  CodeWriter code;
  ReturnNew(&code);
  Module module = OfMain(WithKernel(), kTensor4, 2, &code);
  const auto data = std::make_shared<std::vector<std::uint32_t>>(n);
  std::iota(data->begin(), data->end(), 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    Constant constant;
    constant.type = TensorType(kFloat32, {1}).nodes[0];
    constant.raw_bytes = 4;
    constant.stored = {{reinterpret_cast<const std::byte*>(data->data() + i), 4}, data};
    constant.checksum = 42;  // as a file may say of all of them
    module.constants.push_back(std::move(constant));
  }
  return module;
}

// Each calls the next one, the last makes the tensor; `ring`: or calls the first.
Module Calls(std::uint32_t n, bool callers_first, bool ring) {
  Module module = WithKernel();
  for (std::uint32_t i = 0; i < n; ++i) {
    CodeWriter code;
    const std::uint32_t depth = callers_first ? i : n - 1 - i;
    if (depth + 1 < n) {
      code.Invoke(callers_first ? i + 1 : i - 1, 0, {});
      code.Ret(0);
    } else if (ring) {
      auto call = code.NewLabel(), make = code.NewLabel();
      code.LoadConsti(1, 0);
      code.If(0, 0, call, make);
      code.Bind(call);
      code.Invoke(callers_first ? 0 : n - 1, 0, {});
      code.Ret(0);
      code.Bind(make);
      ReturnNew(&code);
    } else {
      ReturnNew(&code);
    }
    module.functions.push_back(MakeFunction(Numbered("f", i), kTensor4, 2, &code));
  }
  return module;
}

// if, one tensor on each side, and the result of all of them in one register.
Module Branches(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, 1);
  code.LoadConsti(1, 2);
  Make(&code, 1, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto left = code.NewLabel(), right = code.NewLabel(), join = code.NewLabel();
    code.If(2, 2, left, right);
    code.Bind(left);
    Make(&code, 1, 3);
    code.Goto(join);
    code.Bind(right);
    Make(&code, 1, 3);
    code.Bind(join);
  }
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, 4, &code);
}

// Loops that follow each other. What each makes may be the result.
Module Loops(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, 1);
  code.LoadConsti(1, 2);
  Make(&code, 1, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto again = code.NewLabel(), done = code.NewLabel();
    code.Bind(again);
    Make(&code, 1, 0);
    code.If(2, 2, again, done);
    code.Bind(done);
  }
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, 3, &code);
}

// Tensors in registers of their own, all of them live to the end.
Module LiveRegisters(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  for (std::uint32_t i = 0; i < n; ++i) Make(&code, n, i);
  code.InvokePacked(0, 0, kNone, Registers(0, n));
  Make(&code, n, 0);
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, n + 1, &code);
}

// Tensors that nobody writes.
Module Unwritten(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, 1);
  for (std::uint32_t i = 0; i < n; ++i) Alloc(&code, 1, 0);
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, 2, &code);
}

Module AdtFields(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  for (std::uint32_t i = 0; i < n; ++i) Make(&code, n, i);
  code.AllocADT(0, 0, Registers(0, n));
  code.InvokePacked(0, 0, kNone, std::vector<std::uint32_t>{0});
  code.GetField(0, n - 1, 0);
  code.Kill(0);
  Make(&code, n, 0);
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, n + 1, &code);
}

// A list that grows at its head and is read after each step.
Module AdtNesting(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, 1);
  code.AllocADT(0, 0, {});
  for (std::uint32_t i = 0; i < n; ++i) {
    Make(&code, 1, 2);
    code.AllocADT(1, 0, std::vector<std::uint32_t>{2, 0});
    code.InvokePacked(0, 0, kNone, std::vector<std::uint32_t>{0});
  }
  code.Kill(0);
  Make(&code, 1, 0);
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, 3, &code);
}

Module Captures(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  for (std::uint32_t i = 0; i < n; ++i) Make(&code, n, i);
  code.AllocClosure(1, 0, Registers(0, n));
  code.InvokeClosure(0, 0, {});
  Make(&code, n, 0);
  code.Ret(0);
  Module module = OfMain(WithKernel(), kTensor4, n + 1, &code);
  CodeWriter callee;
  callee.Ret(0);
  Function function = MakeFunction("f", kTensor4, n, &callee);
  for (std::uint32_t i = 0; i < n; ++i) function.inputs.push_back({Numbered("x", i), kTensor4});
  module.functions.push_back(std::move(function));
  return module;
}

// An import that says it writes n arguments, and n calls that have one, which may stand for any number.
Module AlsoWritten(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, 1);
  Make(&code, 1, 2);
  code.AllocADT(0, 3, std::vector<std::uint32_t>{2});
  for (std::uint32_t i = 0; i < n; ++i) code.InvokePacked(1, 0, kNone, std::vector<std::uint32_t>{3});
  Make(&code, 1, 0);
  code.Ret(0);
  Module module = WithKernel();
  const std::vector<std::uint32_t> positions = Registers(1, n);
  KernelImport writes = WithKernel({positions.begin(), positions.end()}).kernels[0];
  module.kernels.push_back(std::move(writes));
  return OfMain(std::move(module), kTensor4, 4, &code);
}

// One call with n arguments, all of which the import says are written.
Module WrittenArguments(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  for (std::uint32_t i = 0; i < n; ++i) Alloc(&code, n, i);
  code.InvokePacked(0, 0, kNone, Registers(0, n));
  code.Ret(0);
  const std::vector<std::uint32_t> positions = Registers(0, n);
  return OfMain(WithKernel({positions.begin(), positions.end()}), kTensor4, n + 1, &code);
}

Module Kernels(std::uint32_t n) {
  Module module = WithKernel();
  while (module.kernels.size() < n) module.kernels.push_back(module.kernels[0]);
  CodeWriter code;
  ReturnNew(&code);
  return OfMain(std::move(module), kTensor4, 2, &code);
}

Module Devices(std::uint32_t n) {
  Module module = WithKernel();
  for (std::uint32_t i = 1; i < n; ++i) {
    DeviceEntry device;
    device.id = static_cast<std::int32_t>(i);
    module.devices.push_back(std::move(device));
  }
  CodeWriter code;
  ReturnNew(&code);
  return OfMain(std::move(module), kTensor4, 2, &code);
}

Module Outputs(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  for (std::uint32_t i = 0; i < n; ++i) Make(&code, n, i);
  code.AllocADT(0, 0, Registers(0, n));
  code.Ret(0);
  return OfMain(WithKernel(), AdtType(0, Array<Type>(n, kTensor4)), n + 1, &code);
}

// A function with n outputs, called by another that passes them on.
Module CalledOutputs(std::uint32_t n) {
  CodeWriter code;
  code.Invoke(1, 0, {});
  code.Ret(0);
  const Type result = AdtType(0, Array<Type>(n, kTensor4));
  Module module = OfMain(WithKernel(), result, 1, &code);
  module.functions.push_back(std::move(Outputs(n).functions[0]));
  module.functions.back().name = "f";
  return module;
}

Module Inputs(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  Alloc(&code, n, n + 1);
  std::vector<std::uint32_t> args = Registers(0, n);
  args.push_back(n + 1);
  code.InvokePacked(0, 1, kNone, args);
  code.Ret(n + 1);
  Module module = OfMain(WithKernel(), kTensor4, n + 2, &code);
  for (std::uint32_t i = 0; i < n; ++i) module.functions[0].inputs.push_back({Numbered("x", i), kTensor4});
  return module;
}

// Functions that take and return, called by one after the other.
Module Signatures(std::uint32_t n) {
  Module module = WithKernel();
  CodeWriter code;
  AllocStorage(&code, 1);
  Make(&code, 1, 0);
  for (std::uint32_t i = 1; i < n; ++i) code.Invoke(i, 2, std::vector<std::uint32_t>{0, 0});
  code.Ret(0);
  module = OfMain(std::move(module), kTensor4, 3, &code);
  for (std::uint32_t i = 1; i < n; ++i) {
    CodeWriter callee;
    callee.AllocADT(0, 2, std::vector<std::uint32_t>{0, 1});
    callee.Ret(2);
    Function function = MakeFunction(Numbered("f", i), AdtType(0, {kTensor4, kTensor4}), 3, &callee);
    function.inputs.push_back({"a", kTensor4});
    function.inputs.push_back({"b", kTensor4});
    module.functions.push_back(std::move(function));
  }
  return module;
}

Module Strings(std::uint32_t n) {
  Module module = WithKernel();
  CodeWriter code;
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < n; ++i) {
    module.strings.push_back(Numbered("a string ", i));
    module.symbols.push_back(Numbered("n", i));
    module.metadata.push_back({Numbered("key", i), "value"});
    places.push_back(code.pc());
    code.LoadConsti(i, 0);
  }
  ReturnNew(&code);
  module = OfMain(std::move(module), kTensor4, 2, &code);
  for (const std::uint32_t pc : places) module.functions[0].notes.push_back({pc, "a node of the model"});
  return module;
}

// R registers that change places in a loop: each may hold what any instruction has made.
Module Ring(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n + 1);
  code.LoadConsti(1, n + 2);
  for (std::uint32_t i = 0; i < n; ++i) Make(&code, n + 1, i);
  auto again = code.NewLabel(), done = code.NewLabel();
  code.Bind(again);
  code.Move(n - 1, n);
  for (std::uint32_t i = n - 1; i > 0; --i) code.Move(i - 1, i);
  code.Move(n, 0);
  code.If(n + 2, n + 2, again, done);
  code.Bind(done);
  code.Ret(0);
  return OfMain(WithKernel(), kTensor4, n + 3, &code);
}

// The analysis learns of one register after another, a round of the loop each.
Module Shift(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, n);
  code.LoadConsti(1, n + 1);
  for (std::uint32_t i = 0; i < n; ++i) code.LoadConsti(1, i);
  auto again = code.NewLabel(), done = code.NewLabel();
  code.Bind(again);
  for (std::uint32_t i = n - 1; i > 0; --i) code.Move(i - 1, i);
  Make(&code, n, 0);
  code.If(n + 1, n + 1, again, done);
  code.Bind(done);
  code.Ret(n - 1);
  return OfMain(WithKernel(), SimpleType(TypeKind::kValue), n + 2, &code);
}

// Many jump targets and many registers: a state is their product.
Module States(std::uint32_t n) {
  CodeWriter code;
  code.LoadConsti(1, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto next = code.NewLabel();
    code.Goto(next);
    code.Bind(next);
  }
  ReturnNew(&code);
  return OfMain(WithKernel(), kTensor4, 1u << 13, &code);
}

// Every tensor may be read unwritten in every block.
Module UnwrittenBlocks(std::uint32_t n) {
  CodeWriter code;
  AllocStorage(&code, 1);
  code.LoadConsti(1, 2);
  code.AllocADT(0, 0, {});
  for (std::uint32_t i = 0; i < n; ++i) {
    Alloc(&code, 1, 3);
    code.AllocADT(1, 0, std::vector<std::uint32_t>{3, 0});
    auto next = code.NewLabel(), other = code.NewLabel();
    code.If(2, 2, next, other);
    code.Bind(other);
    code.InvokePacked(0, 0, kNone, std::vector<std::uint32_t>{0});
    code.Bind(next);
  }
  code.Ret(0);
  return OfMain(WithKernel(), SimpleType(TypeKind::kValue), 4, &code);
}

}  // namespace

std::vector<GrowingModule> GrowingModules() {
  return {
      {"constants of one stated checksum", Constants, true},
      {"calls, callers first", [](std::uint32_t n) { return Calls(n, true, false); }, true},
      {"calls, callees first", [](std::uint32_t n) { return Calls(n, false, false); }, true},
      {"calls in a ring", [](std::uint32_t n) { return Calls(n, true, true); }, true},
      {"branches", Branches, true},
      {"loops", Loops},
      {"live registers", LiveRegisters, true},
      {"tensors that nobody writes", Unwritten, true},
      {"fields of an ADT", AdtFields, true},
      {"ADTs in ADTs", AdtNesting, true},
      {"captures of a closure", Captures},
      {"positions that an import also writes", AlsoWritten, true},
      {"written arguments of a call", WrittenArguments, true},
      {"kernels", Kernels, true},
      {"devices", Devices, true},
      {"outputs", Outputs, true},
      {"outputs of a function that is called", CalledOutputs, true},
      {"inputs", Inputs, true},
      {"signatures", Signatures},
      {"strings, symbols, metadata and notes", Strings, true},
  };
}

std::vector<GrowingModule> ExplodingModules() {
  return {
      {"registers that change places", Ring},
      {"registers that pass on what is known", Shift},
      {"states", States},
      {"tensors unwritten in every block", UnwrittenBlocks},
  };
}

LinkOptions GrowingLinkOptions() {
  LinkOptions options;
  options.stock_kernels = false;
  options.kernels.AddFunction("host.fill", MakePackedFunction([](kernel::TensorView) {}));
  return options;
}

FormatLimits GrowingFormatLimits() {
  FormatLimits limits;
  limits.result_leaves = 1u << 16;
  return limits;
}

}  // namespace rewire::test
