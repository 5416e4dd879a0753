// SPDX-License-Identifier: Apache-2.0
// The container as a whole: modules survive a round trip, and what is wrong with a file is said exactly.
#include <catch2/catch.hpp>
#include <cstring>

#include "rewire/base/hash.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/read_error.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

using Bytes = std::vector<std::byte>;
using test::ReadError;
using test::ReadMessage;
using test::Sample;
using test::Share;

Bytes SampleFile(const std::string& name) { return *SerializeModule(Sample(name)); }

template <typename T>
void Patch(Bytes& file, std::size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
}
template <typename T>
T Peek(const Bytes& file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::size_t EntryOffset(const Bytes& file, SectionId id) {
  for (std::size_t i = 0; i < Peek<FileHeader>(file, 0).section_count; ++i) {
    const std::size_t offset = sizeof(FileHeader) + i * sizeof(SectionEntry);
    if (Peek<SectionEntry>(file, offset).id == static_cast<std::uint32_t>(id)) return offset;
  }
  FAIL("no such section");
  return 0;
}

void FixDirectory(Bytes& file) {
  const std::size_t size =
      sizeof(FileHeader) + Peek<FileHeader>(file, 0).section_count * sizeof(SectionEntry);
  Patch(file, size, Hash64({file.data(), size}));
}

void FixSection(Bytes& file, SectionId id) {
  const std::size_t at = EntryOffset(file, id);
  SectionEntry entry = Peek<SectionEntry>(file, at);
  entry.checksum = Hash64({file.data() + entry.offset, entry.size});
  Patch(file, at, entry);
  FixDirectory(file);
}

OpenOptions VerifyData() {
  OpenOptions options;
  options.verify_data = true;
  return options;
}

TEST_CASE("every sample writes, reads and writes the same bytes") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    CAPTURE(sample.name);
    Result<Bytes> first = SerializeModule(sample.module);
    REQUIRE(first);
    Result<Module> read = ReadModule(Share(*first), VerifyData());
    if (!read) FAIL(read.error().message());
    Result<Bytes> second = SerializeModule(*read);
    REQUIRE(second);
    CHECK(*first == *second);
  }
}

TEST_CASE("a module keeps all it says over a round trip") {
  const Module before = Sample("add_constant");
  const Module after = *ReadModule(Share(*SerializeModule(before)));
  CHECK(after.metadata == before.metadata);
  CHECK(after.devices == before.devices);
  REQUIRE(after.kernels.size() == 1);
  CHECK(after.kernels[0].name == "rewire.add");
  CHECK(after.kernels[0].debug_name == "fused_add");
  CHECK(after.kernels[0].attributes == before.kernels[0].attributes);
  CHECK(after.kernels[0].alignment == 64);
  REQUIRE(after.functions.size() == 1);
  CHECK(after.functions[0].code == before.functions[0].code);
  CHECK(after.functions[0].inputs[0].name == "x");
  CHECK(after.functions[0].inputs[0].type == before.functions[0].inputs[0].type);
  CHECK(after.functions[0].result == before.functions[0].result);
  CHECK(after.functions[0].output_names == before.functions[0].output_names);
  CHECK(after.functions[0].register_count == 4);
  REQUIRE(after.functions[0].notes.size() == 1);
  CHECK(after.functions[0].notes[0].text == "Add_3");
  REQUIRE(after.constants.size() == 1);
  CHECK(after.constants[0].type == before.constants[0].type);
  REQUIRE(after.constants[0].stored.view.size() == 16);
  CHECK(std::memcmp(after.constants[0].stored.view.data(), before.constants[0].stored.view.data(), 16) == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(after.constants[0].stored.view.data()) % 16 == 0);
}

TEST_CASE("sections are aligned and constants of odd sizes too") {
  Module module = Sample("add_constant");
  module.constants.push_back(module.constants[0]);
  module.constants[0].stored.view = module.constants[0].stored.view.subspan(0, 5);
  Bytes file = *SerializeModule(module);
  CHECK(Peek<SectionEntry>(file, EntryOffset(file, SectionId::kData)).size == 64 + 16);
  for (std::size_t i = 0; i < Peek<FileHeader>(file, 0).section_count; ++i) {
    CHECK(Peek<SectionEntry>(file, sizeof(FileHeader) + i * sizeof(SectionEntry)).offset % 64 == 0);
  }
  CHECK(ReadModule(Share(file), VerifyData())->constants[1].stored.view.size() == 16);

  file[file.size() - 17] = std::byte{1};
  CHECK(ReadModule(Share(file)));
  CHECK(ReadMessage(file, VerifyData()) == "the padding before the bytes of constant 1 ('w') is not zero");
}

TEST_CASE("what is no executable is named so") {
  const std::string not_ours =
      "this is not a Rewire executable: it does not start with the bytes 89 'RWX' of one";
  CHECK(ReadMessage({}) == not_ours);
  CHECK(ReadMessage(Bytes(5)) == not_ours);
  CHECK(ReadMessage(Bytes(1000)) == not_ours);
  CHECK(ReadError({}).code() == StatusCode::kInvalidFile);
  Bytes file = SampleFile("identity");
  file.erase(file.begin() + 4);
  CHECK(ReadMessage(file) == "the file was changed by a transfer as text: copy it again as binary");
}

TEST_CASE("cut off and extended files say by how much") {
  Bytes file = SampleFile("identity");
  const std::string size = std::to_string(file.size());
  CHECK(ReadMessage(Bytes(file.begin(), file.begin() + 20)) ==
        "the file is cut off: it has 20 bytes, its header alone takes 24");
  CHECK(ReadMessage(Bytes(file.begin(), file.end() - 1)) ==
        "the file is cut off: its header says " + size + " bytes, it has " + std::to_string(file.size() - 1));
  file.push_back(std::byte{0});
  CHECK(ReadMessage(file) ==
        "the file is too long: its header says " + size + " bytes, it has " + std::to_string(file.size()));
}

TEST_CASE("versions") {
  Bytes file = SampleFile("identity");
  Patch<std::uint16_t>(file, offsetof(FileHeader, major), 2);
  CHECK(ReadError(file).code() == StatusCode::kUnsupported);
  CHECK(ReadMessage(file) ==
        "the file has format version 2.0, this library reads version 1.x: use a newer library");
  Patch<std::uint16_t>(file, offsetof(FileHeader, major), 0);
  CHECK(ReadMessage(file) ==
        "the file has format version 0.0, this library reads version 1.x: the file is damaged");
  Patch<std::uint16_t>(file, offsetof(FileHeader, major), 1);
  Patch<std::uint16_t>(file, offsetof(FileHeader, minor), 7);
  FixDirectory(file);
  CHECK(ReadModule(Share(file)));
}

TEST_CASE("an unknown section is skipped, or refused when it is required") {
  Bytes file = SampleFile("add_constant");
  const std::size_t entry = EntryOffset(file, SectionId::kMetadata);
  Patch<std::uint16_t>(file, offsetof(FileHeader, minor), 3);
  Patch<std::uint32_t>(file, entry + offsetof(SectionEntry, id), 77);
  FixDirectory(file);
  CHECK(ReadModule(Share(file))->metadata.empty());

  Patch<std::uint32_t>(file, entry + offsetof(SectionEntry, flags), kSectionRequired);
  FixDirectory(file);
  CHECK(ReadError(file).code() == StatusCode::kUnsupported);
  CHECK(ReadMessage(file) ==
        "the file, of format version 1.3, needs section 77, which this library, of format version 1.0, does "
        "not "
        "know: use a newer library");
}

TEST_CASE("a damaged directory or section is found by its checksum") {
  Bytes file = SampleFile("identity");
  file[sizeof(FileHeader) + 9] ^= std::byte{1};
  CHECK(ReadMessage(file) == "the header or section table is damaged: its checksum does not match");

  file = SampleFile("identity");
  file.back() ^= std::byte{1};
  const auto entry = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kCode));
  CHECK(ReadMessage(file).find("section 'code' at offset " + std::to_string(entry.offset) +
                               " is damaged: its bytes have checksum ") == 0);
}

TEST_CASE("the directory's own rules") {
  const Bytes good = SampleFile("identity");
  Bytes file = good;
  Patch<std::uint32_t>(file, offsetof(FileHeader, section_count), 65);
  CHECK(ReadMessage(file) == "the header names 65 sections; a file has at most 64, and this one of " +
                                 std::to_string(good.size()) + " bytes has room for " +
                                 std::to_string((good.size() - 24) / 32));

  file = good;
  const std::size_t functions = EntryOffset(file, SectionId::kFunctions);
  const std::size_t code = EntryOffset(file, SectionId::kCode);
  Patch<std::uint32_t>(file, code, static_cast<std::uint32_t>(SectionId::kFunctions));
  FixDirectory(file);
  CHECK(ReadMessage(file) == "section 7 is there twice");

  file = good;
  Patch<std::uint32_t>(file, functions + offsetof(SectionEntry, flags), 9);
  FixDirectory(file);
  CHECK(ReadMessage(file) == "section 'functions' has flags 9, expected 1");

  file = good;
  const auto entry = Peek<SectionEntry>(file, functions);
  Patch<std::uint64_t>(file, functions + offsetof(SectionEntry, offset), entry.offset + 64);
  FixDirectory(file);
  CHECK(ReadMessage(file) == "section 'functions' is at offset " + std::to_string(entry.offset + 64) +
                                 " with " + std::to_string(entry.size) + " bytes; expected it at " +
                                 std::to_string(entry.offset) + ", in a file of " +
                                 std::to_string(good.size()));

  file = good;
  file[entry.offset - 1] = std::byte{1};
  CHECK(ReadMessage(file) ==
        "the padding before section 'functions' at offset " + std::to_string(entry.offset) + " is not zero");

  file = good;
  file.push_back(std::byte{0});
  Patch<std::uint64_t>(file, offsetof(FileHeader, file_size), file.size());
  FixDirectory(file);
  CHECK(ReadMessage(file) == "1 bytes follow the last section");

  file = SampleFile("add_constant");
  Patch<std::uint64_t>(file, EntryOffset(file, SectionId::kData) + offsetof(SectionEntry, checksum), 1);
  FixDirectory(file);
  CHECK(ReadMessage(file) == "section 'data' has a checksum, expected 0");
}

TEST_CASE("a malformed section says where") {
  Bytes file = SampleFile("identity");
  auto entry = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kFunctions));
  Patch<std::uint32_t>(file, entry.offset, 1u << 30);
  FixSection(file, SectionId::kFunctions);
  const std::string where =
      "section 'functions' at offset " + std::to_string(entry.offset) + " is malformed at ";
  const std::string size = std::to_string(entry.size);
  CHECK(ReadMessage(file) == where + "its byte 4 of " + size + ": it ends inside a record");

  Patch<std::uint32_t>(file, entry.offset, 0);
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == where + "its byte 4 of " + size + ": bytes follow its last record");

  // The type of the input stands after: count, name, input count, input name, node count.
  const std::size_t type = entry.offset + 4 + (4 + 4) + 4 + (4 + 1) + 4;
  Patch<std::uint32_t>(file, entry.offset, 1);
  Patch<std::uint8_t>(file, type, 9);
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == where + "its byte 29 of " + size + ": a type has an unknown kind");

  Patch<std::uint8_t>(file, type, 0);
  Patch<std::uint8_t>(file, type + 1, 1);
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == where + "its byte 29 of " + size + ": bytes that must be zero are not");

  Patch<std::uint8_t>(file, type + 1, 0);
  Patch<std::int32_t>(file, type + 8, -2);
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == where + "its byte 41 of " + size + ": a tensor type has a negative rank");

  Patch<std::int32_t>(file, type + 8, 1 << 20);
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == where + "its byte 41 of " + size + ": a tensor type's dimensions pass the end");
}

TEST_CASE("one byte behind a section's last record is malformed") {
  Module module = Sample("identity");
  module.strings = {"abcd"};
  Bytes file = *SerializeModule(module);
  const auto entry = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kStrings));
  Patch<std::uint32_t>(file, entry.offset + 4, 3);
  FixSection(file, SectionId::kStrings);
  CHECK(ReadMessage(file) == "section 'strings' at offset " + std::to_string(entry.offset) +
                                 " is malformed at its byte 11 of 12: bytes follow its last record");
}

TEST_CASE("a list is not longer than the bytes that remain have room for") {
  Bytes file = SampleFile("identity");
  const auto entry = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kFunctions));
  // As many functions as bytes follow: each takes more than one, so that nothing is made room for.
  Patch<std::uint32_t>(file, entry.offset, static_cast<std::uint32_t>(entry.size - 4));
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == "section 'functions' at offset " + std::to_string(entry.offset) +
                                 " is malformed at its byte 4 of " + std::to_string(entry.size) +
                                 ": it ends inside a record");
}

TEST_CASE("records of device kernels that no text could say are malformed") {
  const Bytes whole = SampleFile("device_code");
  const auto entry = Peek<SectionEntry>(whole, EntryOffset(whole, SectionId::kDeviceCode));
  const auto message_with = [&](std::uint64_t offset, std::uint32_t value) {
    Bytes file = whole;
    Patch<std::uint32_t>(file, entry.offset + offset, value);
    FixSection(file, SectionId::kDeviceCode);
    return ReadMessage(file);
  };
  // A blob takes 20 bytes here and a parameter 29. Then come the outputs, and arguments of 8, 8, 16 and 32.
  constexpr std::uint64_t kParameters = 4 + 20 + 4 + (4 + 10) + (4 + 4) + (4 + 5) + 4;
  constexpr std::uint64_t kOutputs = kParameters + 2 * 29;
  constexpr std::uint64_t kArguments = kOutputs + 8;
  CHECK_THAT(message_with(kOutputs, 3),
             Catch::Contains("a device kernel writes more parameters than it has"));
  CHECK_THAT(message_with(kArguments, 4),
             Catch::Contains("an argument of a device kernel has an unknown kind"));
  for (const std::uint64_t argument : {16, 32}) {
    CHECK_THAT(message_with(kArguments + argument + 4, 0),
               Catch::Contains("an argument of a device kernel has a wrong dtype"));
  }
  Bytes file = whole;
  Patch<std::uint8_t>(file, entry.offset + kParameters + 5, static_cast<std::uint8_t>(TypeKind::kInteger));
  for (const std::uint64_t word : {4, 8, 12}) {
    Patch<std::uint32_t>(file, entry.offset + kParameters + 5 + word, 0);
  }
  FixSection(file, SectionId::kDeviceCode);
  CHECK_THAT(ReadMessage(file), Catch::Contains("a device kernel's parameter is no tensor"));
}

TEST_CASE("unknown kinds of constants and attributes are malformed") {
  Bytes file = SampleFile("add_constant");
  auto constants = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kConstants));
  Patch<std::uint8_t>(file, constants.offset + 4, 3);
  FixSection(file, SectionId::kConstants);
  CHECK(ReadMessage(file).find("a constant has an unknown kind") != std::string::npos);

  file = SampleFile("add_constant");
  auto kernels = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kKernels));
  // After: count, name, debug name, attribute count, attribute name.
  Patch<std::uint32_t>(file, kernels.offset + 4 + (4 + 10) + (4 + 9) + 4 + (4 + 4), 5);
  FixSection(file, SectionId::kKernels);
  CHECK(ReadMessage(file).find("an attribute has an unknown kind") != std::string::npos);
}

TEST_CASE("code and data have exactly the size that functions and constants say") {
  Module module = Sample("add_constant");
  Bytes file = *SerializeModule(module);
  auto functions = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kFunctions));
  const std::size_t code_words = functions.offset + functions.size - 4;
  const auto words = Peek<std::uint32_t>(file, code_words);
  Patch<std::uint32_t>(file, code_words, words + 1);
  FixSection(file, SectionId::kFunctions);
  CHECK(ReadMessage(file) == "the functions have " + std::to_string(words + 1) +
                                 " words of code, section 'code' has " + std::to_string(words * 4) +
                                 " bytes");

  file = *SerializeModule(module);
  auto constants = Peek<SectionEntry>(file, EntryOffset(file, SectionId::kConstants));
  const std::size_t stored = constants.offset + constants.size - 16;
  Patch<std::uint64_t>(file, stored, 17);
  FixSection(file, SectionId::kConstants);
  CHECK(ReadMessage(file) == "constant 0 ('w') has 17 bytes at 0, section 'data' has 16");
  Patch<std::uint64_t>(file, stored, ~std::uint64_t{0});
  FixSection(file, SectionId::kConstants);
  CHECK(ReadMessage(file) == "constant 0 ('w') has 18446744073709551615 bytes at 0, section 'data' has 16");
  Patch<std::uint64_t>(file, stored, 15);
  FixSection(file, SectionId::kConstants);
  CHECK(ReadMessage(file) == "the constants have 15 bytes, section 'data' has 16");
}

TEST_CASE("a constant's damage is found on demand and never laundered") {
  Bytes file = SampleFile("add_constant");
  file.back() ^= std::byte{1};
  Result<Module> module = ReadModule(Share(file));
  REQUIRE(module);
  CHECK(ReadMessage(file, VerifyData()).find("constant 0 ('w') is damaged: its bytes have checksum ") == 0);
  Result<Bytes> again = SerializeModule(*module);
  REQUIRE_FALSE(again);
  CHECK(again.error().message().find("constant 0 ('w') is damaged: its bytes have checksum ") == 0);
}

}  // namespace
}  // namespace rewire
