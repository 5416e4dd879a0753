// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/sample_modules.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/code_writer.h"

namespace rewire::test {
namespace {

constexpr CodeWriter::Reg kNoReg = kNone;

Function MakeFunction(std::string name, Array<NamedType> inputs, Type result, std::uint32_t registers,
                      CodeWriter& code) {
  Function function;
  function.name = std::move(name);
  function.inputs = std::move(inputs);
  function.result = std::move(result);
  const std::size_t leaves = Leaves(function.result).size();
  for (std::size_t i = 0; i < leaves; ++i) function.output_names.push_back("out" + std::to_string(i));
  function.register_count = registers;
  function.code = *code.Finish();
  return function;
}

KernelImport Kernel(std::string name) {
  KernelImport kernel;
  kernel.name = std::move(name);
  return kernel;
}

// y = 2.5 x by device code.
Module DeviceCode() {
  Module module;
  AddDeviceCode(module);
  module.kernels = {Kernel("test.scale")};
  const Type type = TensorType(kFloat32, {4}, 1);
  CodeWriter code;
  code.AllocStorage(kNoReg, 64, kFloat32, 1, 1, {4});
  code.AllocTensor(1, kNoReg, kFloat32, 2, {4});
  code.InvokePacked(0, 1, kNoReg, {0, 2});
  code.Ret(2);
  module.functions = {MakeFunction("main", {{"x", type}}, type, 3, code)};
  return module;
}

// Returns its input.
Module Identity() {
  Module module;
  CodeWriter code;
  code.Ret(0);
  module.functions = {
      MakeFunction("main", {{"x", TensorType(kFloat32, {2})}}, TensorType(kFloat32, {2}), 1, code)};
  return module;
}

// y = x + w with w in the file, and a source note.
Module AddConstant() {
  Module module;
  module.constants = {DataConstant("w", TensorType(kFloat32, {4}), {1, 2, 3, 4})};
  KernelImport add = Kernel("rewire.add");
  add.debug_name = "fused_add";
  add.attributes = {{"axis", std::int64_t{-1}},
                    {"alpha", 0.5},
                    {"mode", std::string("numpy")},
                    {"pads", std::vector<std::int64_t>{0, 1}},
                    {"scales", std::vector<double>{1.0, 2.0}}};
  add.alignment = 64;
  module.kernels = {add};
  CodeWriter code;
  code.LoadConst(0, 1);
  code.AllocStorage(kNoReg, 64, kFloat32, 0, 2, {4});
  code.AllocTensor(2, kNoReg, kFloat32, 3, {4});
  const std::uint32_t call = code.pc();
  code.InvokePacked(0, 1, kNoReg, {0, 1, 3});
  code.Kill(2);
  code.Ret(3);
  const Type vector = TensorType(kFloat32, {4});
  module.functions = {MakeFunction("main", {{"x", vector}}, vector, 4, code)};
  module.functions[0].notes = {{call, "Add_3"}};
  module.metadata = {{"producer", "sample_modules"}, {"model", "gr\xC3\xBC\xC3\x9F"}};
  return module;
}

// A loop, a branch, ADTs, closures and calls: every opcode that control takes.
Module Control() {
  Module module;
  module.strings = {"the list is empty"};
  const Type integer = SimpleType(TypeKind::kInteger);
  const Type value = SimpleType(TypeKind::kValue);

  CodeWriter loop;  // counts to n
  auto again = loop.NewLabel(), body = loop.NewLabel(), done = loop.NewLabel();
  loop.LoadConsti(0, 1);
  loop.Bind(again);
  loop.If(1, 0, done, body);
  loop.Bind(body);
  loop.Invoke(1, 1, {1});
  loop.Goto(again);
  loop.Bind(done);
  loop.Ret(1);
  module.functions.push_back(MakeFunction("count", {{"n", integer}}, integer, 2, loop));

  module.kernels = {Kernel("test.increment"), Kernel("rewire.seq.append")};
  module.kernels[1].flags = kKernelObjects;
  module.kernels[1].also_written = {0};
  CodeWriter increment;
  increment.InvokePacked(0, 0, 1, {0});
  increment.Ret(1);
  module.functions.push_back(MakeFunction("increment", {{"i", integer}}, integer, 2, increment));

  CodeWriter head;  // the first field of a cell with tag 1
  auto cell = head.NewLabel(), empty = head.NewLabel();
  head.GetTag(0, 1);
  head.LoadConsti(1, 2);
  head.If(1, 2, cell, empty);
  head.Bind(empty);
  head.Fatal(0);
  head.Bind(cell);
  head.GetField(0, 0, 1);
  head.Ret(1);
  module.functions.push_back(MakeFunction("head", {{"list", value}}, value, 3, head));

  CodeWriter main;
  main.LoadConsti(7, 1);
  main.AllocADT(0, 2, {});
  main.AllocADT(1, 3, {1, 2});
  main.AllocClosure(2, 4, {3});
  main.InvokeClosure(4, 5, {});
  main.Move(5, 6);
  main.AllocADT(0, 7, {0, 6});
  main.Ret(7);
  const Type matrix = TensorType(kFloat32, {SymbolDim(0), kUnknownDim});
  module.symbols = {"N"};
  module.functions.push_back(MakeFunction("main", {{"x", matrix}}, AdtType(0, {matrix, value}), 8, main));
  return module;
}

// Shapes that are computed, a second device, a parameter and a constant that __init fills.
Module Shapes() {
  Module module;
  module.devices.push_back({kDLCPU, 1, "scratch"});
  module.symbols = {"N"};
  const Type weight = TensorType(kFloat32, {2, 2});
  Constant parameter;
  parameter.kind = ConstantKind::kParameter;
  parameter.name = "weight";
  parameter.type = weight.nodes[0];
  Constant packed;
  packed.kind = ConstantKind::kComputed;
  packed.name = "weight.packed";
  packed.type = weight.nodes[0];
  packed.raw_bytes = 16;
  module.constants = {parameter, packed};
  module.kernels = {Kernel("test.pack"), Kernel("test.scale")};

  CodeWriter init;
  init.LoadConst(0, 0);
  init.AllocStorage(kNoReg, 64, kFloat32, 0, 1, {2, 2});
  init.AllocTensor(1, kNoReg, kFloat32, 2, {2, 2});
  init.InvokePacked(0, 1, kNoReg, {0, 2});
  init.AllocADT(0, 3, {2});
  init.Ret(3);
  module.functions.push_back(MakeFunction(kInitFunction, {}, AdtType(0, {weight}), 4, init));

  CodeWriter main;
  main.LoadConst(1, 1);
  main.ShapeOf(0, 2);
  main.LoadConsti(4096, 3);
  main.AllocStorage(3, 64, kFloat32, 1, 4, {});
  main.LoadConsti(0, 5);
  main.AllocTensorReg(4, 5, 2, kFloat32, 6);
  main.InvokePacked(1, 1, kNoReg, {0, 1, 6});
  main.ReshapeTensor(6, 2, 7);
  main.DeviceCopy(7, 1, 0, 8);
  main.Ret(8);
  const Type rows = TensorType(kFloat32, {SymbolDim(0), 2});
  module.functions.push_back(MakeFunction("main", {{"x", rows}}, rows, 9, main));
  return module;
}

// Returns 64 times 0.5, kept as a zstd frame. The frame is written out because compressors differ in what
// they make.
Module Compressed() {
  static constexpr unsigned char kFrame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x60, 0x00, 0x00, 0x5d, 0x00, 0x00, 0x20,
                                             0x00, 0x00, 0x00, 0x3f, 0x01, 0x00, 0xf9, 0x29, 0x47, 0x04};
  Module module;
  const Type halves = TensorType(kFloat32, {64});
  Constant constant;
  constant.name = "halves";
  constant.type = halves.nodes[0];
  constant.codec = kCodecZstd;
  constant.raw_bytes = 256;
  constant.stored.view = {reinterpret_cast<const std::byte*>(kFrame), sizeof(kFrame)};
  module.constants = {constant};
  CodeWriter code;
  code.LoadConst(0, 0);
  code.Ret(0);
  module.functions = {MakeFunction("main", {}, halves, 1, code)};
  return module;
}

Module CompressedTables() {
  Module module = Shapes();
  module.compressed = true;
  return module;
}

}  // namespace

Constant DataConstant(std::string name, Type type, const std::vector<float>& values) {
  auto owner = std::make_shared<std::vector<float>>(values);
  Constant constant;
  constant.name = std::move(name);
  constant.type = type.nodes[0];
  constant.raw_bytes = owner->size() * sizeof(float);
  constant.stored.view = {reinterpret_cast<const std::byte*>(owner->data()), owner->size() * sizeof(float)};
  constant.stored.owner = std::move(owner);
  return constant;
}

void AddDeviceCode(Module& module) {
  static constexpr char kSource[] =
      "__kernel void scale(__global const float* x, __global float* y, float factor, int n) {\n"
      "  int i = get_global_id(0);\n"
      "  if (i < n) y[i] = x[i] * factor;\n"
      "}\n";
  const auto device = static_cast<std::uint32_t>(module.devices.size());
  module.devices.push_back({kDLOpenCL, 0, ""});
  const auto symbol = static_cast<std::uint32_t>(module.symbols.size());
  module.symbols.push_back("n");
  Constant code;
  code.name = "code";
  code.type = TensorType(kUInt8, {sizeof(kSource) - 1}).nodes[0];
  code.raw_bytes = sizeof(kSource) - 1;
  code.stored.view = {reinterpret_cast<const std::byte*>(kSource), sizeof(kSource) - 1};
  module.constants.push_back(code);
  module.device_code.push_back({"test", static_cast<std::uint32_t>(DeviceCodeForm::kOpenClC), "",
                                static_cast<std::uint32_t>(module.constants.size() - 1)});
  const auto number = [](std::int64_t value) {
    SizeExpression size;
    size.words = {static_cast<std::int64_t>(SizeOp::kNumber), value};
    return size;
  };
  SizeExpression n, groups;
  n.words = {static_cast<std::int64_t>(SizeOp::kSymbol), std::int64_t{symbol}};
  groups.words = n.words;
  for (const std::int64_t word :
       {std::int64_t{0}, std::int64_t{64}, static_cast<std::int64_t>(SizeOp::kCeilDivide)}) {
    groups.words.push_back(word);
  }
  DeviceKernelEntry kernel;
  kernel.name = "test.scale";
  kernel.code = "test";
  kernel.symbol = "scale";
  const TypeNode type = TensorType(kFloat32, {SymbolDim(symbol)}, device).nodes[0];
  kernel.parameters = {{"x", type}, {"y", type}};
  kernel.outputs = 1;
  kernel.arguments = {{DeviceArgumentKind::kTensor, 0, kUnknownDType, {}, 0},
                      {DeviceArgumentKind::kTensor, 1, kUnknownDType, {}, 0},
                      {DeviceArgumentKind::kReal, 0, kFloat32, {}, 2.5},
                      {DeviceArgumentKind::kInteger, 0, kInt32, n, 0}};
  kernel.groups[0] = groups;
  kernel.threads[0] = number(64);
  for (std::size_t i = 1; i < 3; ++i) kernel.groups[i] = kernel.threads[i] = number(1);
  kernel.shared_bytes = number(0);
  module.device_kernels.push_back(kernel);
}

std::vector<SampleModule> SampleModules() {
  return {{"identity", Identity()},
          {"add_constant", AddConstant()},
          {"control", Control()},
          {"shapes", Shapes()},
          {"compressed", Compressed()},
          {"device_code", DeviceCode()},
          {"compressed_tables", CompressedTables()}};
}

Module Sample(const std::string& name) {
  for (SampleModule& sample : SampleModules()) {
    if (sample.name == name) return std::move(sample.module);
  }
  throw std::out_of_range("no sample " + name);
}

SharedBytes Share(const std::vector<std::byte>& bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  return SharedBytes{{owner->data(), owner->size()}, owner};
}

std::vector<BundledExecutable> SampleBundle() {
  std::vector<BundledExecutable> models;
  for (SampleModule& sample : SampleModules()) {
    // Younger than the bundle.
    if (sample.name == "device_code" || sample.name == "compressed_tables") continue;
    models.push_back({sample.name, *Executable::FromModule(std::move(sample.module))});
  }
  models.push_back({"again", models.front().executable});
  return models;
}

}  // namespace rewire::test
