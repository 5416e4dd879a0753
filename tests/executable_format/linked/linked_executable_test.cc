// SPDX-License-Identifier: Apache-2.0
// Executables that are linked into a program.
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/linked/linked_copy.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

// The module with all constants decoded, as the bytes of a file that is not compressed.
std::vector<std::byte> DecodedFile(const Executable& executable) {
  Module module = executable.module();
  module.compressed = false;
  for (Constant& constant : module.constants) {
    if (constant.kind != ConstantKind::kData) continue;
    std::vector<std::byte> raw(constant.raw_bytes);
    REQUIRE(DecodeConstant(constant, {}, {raw.data(), raw.size()}));
    constant.codec = kCodecNone;
    constant.checksum = 0;
    constant.stored = test::Share(raw);
  }
  const Result<std::vector<std::byte>> file = SerializeModule(module);
  if (!file) FAIL(file.error().message());
  return *file;
}

TEST_CASE("an executable that is linked in is the one that was verified") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    CAPTURE(sample.name);
    const Result<Executable> executable = Executable::FromModule(sample.module);
    REQUIRE(executable);
    const test::LinkedCopy copy(*executable);
    const Executable opened = copy.Open();
    CHECK(DecodedFile(opened) == DecodedFile(*executable));
    CHECK(opened.FindFunction("main") == executable->FindFunction("main"));
    // Once more: an executable that is linked in can be the source of another.
    const test::LinkedCopy again(opened);
    CHECK(again.image().tables == copy.image().tables);
    CHECK(again.image().data == copy.image().data);
  }
}

TEST_CASE("constants that are linked in are used where they lie, aligned and decoded") {
  // Two short constants and one that is compressed: each begins at a multiple of 64.
  Module module = test::Sample("add_constant");
  module.constants.push_back(test::DataConstant("v", TensorType(kFloat32, {1}), {5}));
  module.constants.push_back(test::Sample("compressed").constants[0]);
  REQUIRE(module.constants[2].codec == kCodecZstd);
  const Result<Executable> executable = Executable::FromModule(std::move(module));
  REQUIRE(executable);
  const test::LinkedCopy copy(*executable);
  const auto* begin = reinterpret_cast<const std::byte*>(copy.linked().data);
  const std::byte* next = begin;
  const Executable opened = copy.Open();
  for (const Constant& constant : opened.module().constants) {
    CAPTURE(constant.name);
    CHECK(constant.codec == kCodecNone);
    CHECK(constant.stored.view.size() == constant.raw_bytes);
    CHECK(IsAligned(constant.stored.view, 64));
    CHECK(constant.stored.view.data() == next);
    CHECK(constant.stored.owner == nullptr);
    next += (constant.raw_bytes + 63) / 64 * 64;
  }
  CHECK(next == begin + copy.image().data.size());
}

TEST_CASE("what was made for another library is refused") {
  const Result<Executable> executable = Executable::FromModule(test::Sample("add_constant"));
  REQUIRE(executable);
  const test::LinkedCopy copy(*executable);
  const char other = 0;
  for (const char* version : {static_cast<const char*>(nullptr), &other}) {
    RewireLinkedExecutable linked = copy.linked();
    linked.version = version;
    const Result<Executable> opened = OpenLinked(linked);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code() == StatusCode::kInvalidArgument);
    CHECK(opened.error().message() ==
          "no executable that vm-aot --bytecode has made for this library; make it again");
  }
}

TEST_CASE("damaged constants, and those that only a host decodes, are not linked in") {
  Module module = test::Sample("add_constant");
  REQUIRE(module.constants[0].kind == ConstantKind::kData);
  SECTION("damaged") {
    module.constants[0].checksum = 1;
    const Result<Executable> executable = Executable::FromModule(module);
    REQUIRE(executable);
    CHECK(MakeLinkedImage(*executable).status().code() == StatusCode::kInvalidFile);
  }
  SECTION("by the host's codec") {
    module.constants[0].codec = kFirstHostCodec;
    const Result<Executable> executable = Executable::FromModule(module);
    REQUIRE(executable);
    CHECK(MakeLinkedImage(*executable).status().code() == StatusCode::kUnsupported);
  }
}

TEST_CASE("threads open one executable that is linked in at once") {
  const Result<Executable> executable = Executable::FromModule(test::Sample("add_constant"));
  REQUIRE(executable);
  const test::LinkedCopy copy(*executable);
  const std::vector<std::byte> expected = DecodedFile(*executable);
  std::vector<std::vector<std::byte>> given(2);
  std::vector<std::thread> threads;
  for (std::vector<std::byte>& file : given) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) file = *SerializeModule(copy.Open().module());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<std::byte>& file : given) CHECK(file == expected);
}

}  // namespace
}  // namespace rewire
