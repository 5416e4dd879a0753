// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/assembler.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/executable_format/text/disassembler.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/support/paths.h"

namespace rewire {
namespace {

Module Assembled(const std::string& text) {
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  return std::move(*module);
}

template <typename T>
std::vector<T> Values(const Constant& constant) {
  std::vector<T> values(constant.stored.view.size() / sizeof(T));
  std::memcpy(values.data(), constant.stored.view.data(), values.size() * sizeof(T));
  return values;
}

TEST_CASE("a program as one writes it by hand is what the verifier accepts") {
  const Module module = Assembled(R"(
    .kernel add = "rewire.add"
    .func main(x: f32[4]) -> sum: f32[4]
      %bytes = load_consti 16
      %storage = alloc_storage %bytes, alignment=64, f32, cpu
      %sum = alloc_tensor %storage, _, f32[4]
      invoke_packed add(%x, %x, %sum), outputs=1 @ "Add_0"
      ret %sum
    .end)");
  const Status verified = VerifyModule(module);
  if (!verified) FAIL(verified.error().message());

  CodeWriter code;
  code.LoadConsti(16, 1);
  code.AllocStorage(1, 64, kFloat32, 0, 2, {});
  code.AllocTensor(2, kNone, kFloat32, 3, {4});
  const std::uint32_t add = code.pc();
  code.InvokePacked(0, 1, kNone, {0, 0, 3});
  code.Ret(3);
  const Function& function = module.functions[0];
  CHECK((function.code == *code.Finish()));
  CHECK(function.register_count == 4);
  CHECK(function.output_names == std::vector<std::string>{"sum"});
  REQUIRE(function.notes.size() == 1);
  CHECK(function.notes[0].pc == add);
  CHECK(function.notes[0].text == "Add_0");
  CHECK(module.kernels[0].name == "rewire.add");
  CHECK(module.kernels[0].debug_name == "add");
}

TEST_CASE("the program in docs/assembly.md is one") {
  std::ifstream file(std::string(test::SourceDir()) + "/docs/assembly.md");
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const bool is_code = line.compare(0, 4, "    ") == 0;
    if (!inside && is_code) inside = true;
    if (inside && !is_code && !line.empty()) break;
    if (inside) text += line + "\n";
  }
  const Module module = Assembled(text);
  const Status verified = VerifyModule(module);
  if (!verified) FAIL(verified.error().message());
  CHECK(module.functions[0].notes.size() == 2);
}

TEST_CASE("registers: inputs first, names in order of appearance, numbers as they are") {
  const Module module = Assembled(R"(
    .func f(a: value, b: value) -> value
      %x = move %b
      %3 = move %x
      %y = move %a
      ret %y
    .end)");
  CodeWriter code;
  code.Move(1, 2);
  code.Move(2, 3);
  code.Move(0, 4);  // %3 is taken by its number
  code.Ret(4);
  CHECK((module.functions[0].code == *code.Finish()));
  CHECK(module.functions[0].register_count == 5);
  CHECK(module.functions[0].output_names == std::vector<std::string>{"output0"});
}

TEST_CASE("labels forward, backward, in front of an instruction and alone") {
  const Module module = Assembled(R"(
    .func f(a: value) -> value
    again: %x = move %a
      if %x == %a goto done else again
    done:
      ret %x
    .end)");
  CodeWriter code;
  const CodeWriter::Label again = code.NewLabel(), done = code.NewLabel();
  code.Bind(again);
  code.Move(0, 1);
  code.If(1, 0, done, again);
  code.Bind(done);
  code.Ret(1);
  CHECK((module.functions[0].code == *code.Finish()));
}

TEST_CASE("data of constants") {
  const Module module = Assembled(R"(
    .const flat: f32[2, 2] = {1, -2.5, 1e3, inf}
    .const nested: i32[2, 2] = {{1, 2}, {3, 0x10}}
    .const scalar: i64[] = -9
    .const braced: u8[] = {255}
    .const zeros: f64[3] = zeros
    .const ones: i8[3] = fill 1
    .const bits: bool[3] = {true, 0, 1}
    .const raw: u8[3] = base64 "AQID"
    .const none: f32[0] = {}
    .const rows: f32[2, 0] = {{}, {}})");
  const Array<Constant>& constants = module.constants;
  CHECK(Values<float>(constants[0]) == std::vector<float>{1, -2.5F, 1000, INFINITY});
  CHECK(Values<std::int32_t>(constants[1]) == std::vector<std::int32_t>{1, 2, 3, 16});
  CHECK(Values<std::int64_t>(constants[2]) == std::vector<std::int64_t>{-9});
  CHECK(Values<std::uint8_t>(constants[3]) == std::vector<std::uint8_t>{255});
  CHECK(Values<double>(constants[4]) == std::vector<double>{0, 0, 0});
  CHECK(Values<std::int8_t>(constants[5]) == std::vector<std::int8_t>{1, 1, 1});
  CHECK(Values<std::uint8_t>(constants[6]) == std::vector<std::uint8_t>{1, 0, 1});
  CHECK(Values<std::uint8_t>(constants[7]) == std::vector<std::uint8_t>{1, 2, 3});
  CHECK(constants[8].stored.view.empty());
  CHECK(constants[9].stored.view.empty());
  for (const Constant& constant : constants) CHECK(constant.raw_bytes == constant.stored.view.size());
}

TEST_CASE("attributes keep integers and floats apart") {
  const Module module = Assembled(R"(
    .kernel k = "x" {a=1, b=1.0, c="t", d=[1, 2], e=[1.0], f=[], g=floats[], h=false, i=-inf} objects align=16 writes(0, 2))");
  const KernelImport& kernel = module.kernels[0];
  const std::vector<AttributeValue> expected = {std::int64_t{1},
                                                1.0,
                                                std::string("t"),
                                                std::vector<std::int64_t>{1, 2},
                                                std::vector<double>{1.0},
                                                std::vector<std::int64_t>{},
                                                std::vector<double>{},
                                                std::int64_t{0},
                                                -INFINITY};
  REQUIRE(kernel.attributes.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK((kernel.attributes[i].value == expected[i]));
  CHECK(kernel.flags == kKernelObjects);
  CHECK(kernel.alignment == 16);
  CHECK(kernel.also_written == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("types, symbols and devices") {
  const Module module = Assembled(R"(
    .device gpu = cuda:0
    .func f(a: f32[N, ?, 3], b: ?[*] on *, c: adt 2 (i64[] on gpu, (), (integer, closure)), d: value on gpu) -> (x: f32[N], (y: storage, value))
    .end)");
  const Function& function = module.functions[0];
  const Type tensor = TensorType(kFloat32, {SymbolDim(0), kUnknownDim, 3});
  CHECK((function.inputs[0].type == tensor));
  CHECK((function.inputs[1].type == UnrankedTensorType(kUnknownDType, kAnyDevice)));
  const Type tree =
      AdtType(2, {TensorType(kInt64, {}, 1), AdtType(0, {}),
                  AdtType(0, {SimpleType(TypeKind::kInteger), SimpleType(TypeKind::kClosure)})});
  CHECK((function.inputs[2].type == tree));
  Type value = SimpleType(TypeKind::kValue);
  value.nodes[0].device = 1;
  CHECK((function.inputs[3].type == value));
  // It comes back from a file, and from text.
  const Result<std::vector<std::byte>> file = SerializeModule(module);
  REQUIRE(file);
  CHECK((ReadModule({{file->data(), file->size()}, nullptr})->functions[0].inputs[3].type == value));
  CHECK(Disassemble(module).text.find("d: value on cuda:0") != std::string::npos);
  Module beyond = module;
  beyond.functions[0].inputs[3].type.nodes[0].device = 2;
  CHECK(VerifyModule(beyond).error().message().find("names device 2, there are 2") != std::string::npos);
  const Type result =
      AdtType(0, {TensorType(kFloat32, {SymbolDim(0)}),
                  AdtType(0, {SimpleType(TypeKind::kStorage), SimpleType(TypeKind::kValue)})});
  CHECK((function.result == result));
  CHECK(function.output_names == std::vector<std::string>{"x", "y", "output2"});
  CHECK(module.symbols == std::vector<std::string>{"N"});
  REQUIRE(module.devices.size() == 2);
  CHECK((module.devices[1] == DeviceEntry{kDLCUDA, 0, ""}));
}

TEST_CASE("a text of more than 4 GiB is refused before it is read") {
  // Addresses alone: whoever reads them ends the process.
  constexpr std::size_t kBytes = (std::size_t{1} << 32) + 1;
  void* pages = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  AssembleOptions options;
  options.file_name = "long.asm";
  CHECK(Assemble({static_cast<const char*>(pages), kBytes - 1}, options).error().message() ==
        "long.asm: a text has at most 4 GiB; put data in files");
  REQUIRE(munmap(pages, kBytes) == 0);
}

TEST_CASE("a nesting of a hundred thousand is read without recursion") {
  const std::string deep(100'000, '(');
  const std::string closing(100'000, ')');
  const Module module = Assembled(".func f(a: " + deep + "value" + closing + ") -> value\n.end");
  CHECK(module.functions[0].inputs[0].type.nodes.size() == 100'001);
  CHECK_FALSE(VerifyModule(module).has_value());
  CHECK(Assemble(Disassemble(module).text).has_value());
}

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("rewire_assembler_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST_CASE("data from files beside the text") {
  const Folder folder;
  const float values[] = {1, 2, 3};
  HostTensor tensor{kFloat32, {3}, CopyBytes({reinterpret_cast<const std::byte*>(values), sizeof(values)})};
  REQUIRE(WriteNpy(folder / "x.npy", tensor).has_value());
  REQUIRE(
      WriteSafetensors(folder / "all weights.safetensors", std::vector<NamedTensor>{{"fc1.weight", tensor}})
          .has_value());
  std::ofstream(folder / "a.asm") << R"(
    .const x: f32[3] = @x.npy
    .const w: f32[3] codec=none = @"all weights.safetensors:fc1.weight"
  )";
  const Result<Module> module = AssembleFile(folder / "a.asm");
  if (!module) FAIL(module.error().message());
  for (const Constant& constant : module->constants)
    CHECK(Values<float>(constant) == std::vector<float>{1, 2, 3});

  const auto message = [&](const std::string& line) {
    std::ofstream(folder / "b.asm") << line;
    const Result<Module> wrong = AssembleFile(folder / "b.asm");
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().code() == StatusCode::kInvalidArgument);
    return wrong.error().message();
  };
  const std::string at = folder / "b.asm" + std::string(":1:20: ");
  CHECK(message(".const x: f32[4] = @x.npy") == at + "the constant is f32[4], '@x.npy' is f32[3]");
  CHECK(message(".const x: f32[3] = @y.npy") ==
        at + "cannot open '" + (folder / "y.npy") + "': No such file or directory");
  CHECK(message(".const x: f32[3] = @x.bin") ==
        at + "'@x.bin' is not of the form @file.npy, @file.npz:name or @file.safetensors:name");
  CHECK(message(".const x: f32[3] = @x.npz") ==
        at + "'@x.npz' does not say which tensor of the file; write @x.npz:name");
  CHECK(message(".const x: f32[3] = @\"all weights.safetensors:fc1.wieght\"") ==
        at + (folder / "all weights.safetensors") +
            " has no tensor 'fc1.wieght'; did you mean 'fc1.weight'?");
}

}  // namespace
}  // namespace rewire
