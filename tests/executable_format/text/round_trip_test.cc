// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/text/disassembler.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/sample_modules.h"
#include "rewire/tests/support/paths.h"

namespace rewire {
namespace {

std::vector<std::byte> Serialized(const Module& module) {
  Result<std::vector<std::byte>> bytes = SerializeModule(module);
  if (!bytes) FAIL(bytes.error().message());
  return std::move(*bytes);
}

Module AssembledAgain(const std::string& text, const AssembleOptions& options = {}) {
  Result<Module> module = Assemble(text, options);
  if (!module) FAIL(module.error().message() << "\n" << text);
  return std::move(*module);
}

// Through a file's bytes, text and back: the bytes must not change.
void CheckRoundTrip(const Module& module) {
  const std::vector<std::byte> bytes = Serialized(module);
  const Result<Module> read = ReadModule(CopyBytes(bytes));
  if (!read) FAIL(read.error().message());
  const std::string text = Disassemble(*read).text;
  INFO(text);
  CHECK((Serialized(AssembledAgain(text)) == bytes));
}

// As vm-dis -o does: large constants in a file beside the text.
void CheckRoundTripWithFile(const Module& module) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rewire_round_trip_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  DisassembleOptions how;
  how.data_file = "data of.safetensors";
  how.max_inline_bytes = 8;
  const Disassembly disassembly = Disassemble(module, how);
  INFO(disassembly.text);
  REQUIRE(WriteSafetensors((folder / how.data_file).string(), disassembly.data).has_value());
  AssembleOptions options;
  options.directory = folder.string();
  CHECK((Serialized(AssembledAgain(disassembly.text, options)) == Serialized(module)));
  std::filesystem::remove_all(folder);
}

std::vector<std::string> TextsBelow(const std::string& folder) {
  std::vector<std::string> paths;
  if (!std::filesystem::exists(folder)) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".asm") paths.push_back(entry.path().string());
  }
  return paths;
}

TEST_CASE("every text of the tree comes back from its executable") {
  const std::string source = test::SourceDir();
  std::size_t count = 0;
  for (const char* folder : {"/tests/executable_format/text", "/tests/programs", "/examples"}) {
    for (const std::string& path : TextsBelow(source + folder)) {
      INFO(path);
      const Result<Module> module = AssembleFile(path);
      if (!module) FAIL(module.error().message());
      CheckRoundTrip(*module);
      CheckRoundTripWithFile(*module);
      ++count;
    }
  }
  CHECK(count >= 1);
}

TEST_CASE("the sample modules come back") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    INFO(sample.name);
    CheckRoundTrip(sample.module);
    CheckRoundTripWithFile(sample.module);
  }
}

TEST_CASE("tables in an order that the text does not meet, shared and missing names") {
  Module module;
  module.symbols = {"M", "N", "M"};
  module.strings = {"unused", "stop", "stop"};
  module.devices.push_back({kDLCUDA, 0, ""});
  module.devices.push_back({kDLCUDA, 0, ""});
  for (const char* name : {"", "w", "w", ""}) {
    Constant constant = test::DataConstant(name, TensorType(kFloat32, {1}), {1});
    module.constants.push_back(std::move(constant));
  }
  module.kernels.push_back({"a", "", {}, 0, 0, {}});
  module.kernels.push_back({"b", "a", {}, 0, 0, {}});
  module.kernels.push_back({"", "", {}, 0, 0, {}});
  for (const char* name : {"f", "f", ""}) {
    Function function;
    function.name = name;
    function.inputs.push_back({"x", TensorType(kFloat32, {SymbolDim(1), SymbolDim(2)}, 2)});
    function.result = SimpleType(TypeKind::kValue);
    function.output_names = {"output0"};
    function.register_count = 9;
    function.notes = {{0, "first"}, {1, "inside"}, {40, "past"}};
    function.code = {0x20F, 2, 0x20F, 1, 0x30B, 2, 0x214, 0x20B};
    module.functions.push_back(std::move(function));
  }
  CheckRoundTrip(module);
}

// A constant of `count` elements of `dtype` with arbitrary bytes.
Module OneConstant(DLDataType dtype, std::int64_t count) {
  Module module;
  Constant& constant = module.constants.emplace_back();
  constant.name = "c";
  constant.type = TensorType(dtype, {count}).nodes[0];
  std::byte* data = nullptr;
  constant.stored = AllocateBytes(ElementBytes(dtype) * static_cast<std::size_t>(count), &data);
  constant.raw_bytes = constant.stored.view.size();
  for (std::size_t i = 0; i < constant.raw_bytes; ++i) data[i] = static_cast<std::byte>(i * 37 + (i >> 3));
  return module;
}

TEST_CASE("constants of every type come back bit for bit") {
  std::vector<DLDataType> dtypes = {kBool8, MakeDType(kBool, 1), MakeDType(kBool, 8, 4)};
  for (const DTypeCode code : {kInt, kUInt, kFloat, kOpaqueHandle, kBFloat, kComplex}) {
    for (const int bits : {1, 4, 8, 16, 32, 64, 128}) {
      dtypes.push_back(MakeDType(code, bits));
      dtypes.push_back(MakeDType(code, bits, 3));
    }
  }
  for (const DLDataType dtype : dtypes) {
    INFO(DTypeName(dtype));
    CheckRoundTrip(OneConstant(dtype, 33));
    CheckRoundTripWithFile(OneConstant(dtype, 33));
    CheckRoundTrip(OneConstant(dtype, 0));
  }
  CheckRoundTrip(OneConstant(kFloat32, 100'000));  // too many to list
}

TEST_CASE("a constant whose bytes do not fit its type keeps them") {
  Module module = OneConstant(kFloat32, 4);
  module.constants[0].raw_bytes = 99;
  CheckRoundTrip(module);
  module.constants[0].codec = 400;
  CheckRoundTrip(module);
  module.constants[0].codec = kCodecZstd;  // no zstd frame at all
  CheckRoundTrip(module);
}

TEST_CASE("data can be left out for people") {
  DisassembleOptions how;
  how.leave_data_out = true;
  CHECK(Disassemble(OneConstant(kFloat32, 1000), how).text ==
        ".const c: f32[1000] = left_out ; 4000 bytes\n");
}

}  // namespace
}  // namespace rewire
