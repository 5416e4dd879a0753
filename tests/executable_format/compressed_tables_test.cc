// SPDX-License-Identifier: Apache-2.0
// Files whose code and tables are compressed: when they are written so, that they say the same, and what is
// refused of them.
#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#ifndef REWIRE_NO_ZSTD
#include <zstd.h>
#endif

#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/container_writer.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/read_error.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

using Bytes = std::vector<std::byte>;
using test::ReadMessage;
using test::Sample;
using test::Share;

container::Section MakeSection(SectionId id, Bytes bytes) {
  return {FindSection(static_cast<std::uint32_t>(id)), std::move(bytes), {}};
}

Bytes File(Array<container::Section> sections) {
  container::MemorySink sink;
  REQUIRE(container::WriteSections(std::move(sections), {}, &sink));
  return sink.Take();
}

// A section that says that its content has `size` bytes.
container::Section Compressed(std::uint64_t size, const Bytes& frames) {
  Bytes bytes(sizeof(size));
  std::memcpy(bytes.data(), &size, sizeof(size));
  bytes.insert(bytes.end(), frames.begin(), frames.end());
  return MakeSection(SectionId::kCompressed, std::move(bytes));
}

TEST_CASE("a module whose file is not compressed is written as ever") {
  Module module = Sample("shapes");
  const Bytes plain = *SerializeModule(module);
  CHECK_FALSE(ReadModule(Share(plain))->compressed);
  module.compressed = true;
  CHECK(*SerializeWithoutData(module) == plain);
}

#ifdef REWIRE_NO_ZSTD

TEST_CASE("without zstd tables are not compressed, and such files are refused") {
  Module module = Sample("shapes");
  const Bytes plain = *SerializeModule(module);
  module.compressed = true;
  CHECK(*SerializeModule(module) == plain);
  const Bytes file = File({Compressed(1000, Bytes(100))});
  CHECK(ReadError(file).code() == StatusCode::kUnsupported);
  CHECK(ReadMessage(file) ==
        "section 'compressed' needs zstd, which this library was built without (REWIRE_WITH_ZSTD)");
}

#else

Bytes Frame(const Bytes& content) {
  Bytes frame(ZSTD_compressBound(content.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 3));
  return frame;
}

Bytes FileOf(const Bytes& content) { return File({Compressed(content.size(), Frame(content))}); }

TEST_CASE("a compressed file is smaller, says the same and stays compressed") {
  Module module = Sample("shapes");
  const Bytes plain = *SerializeModule(module);
  module.compressed = true;
  const Bytes file = *SerializeModule(module);
  CHECK(file.size() < plain.size() * 3 / 4);
  Result<Module> read = ReadModule(Share(file));
  REQUIRE(read);
  CHECK(read->compressed);
  CHECK(*SerializeModule(*read) == file);
  read->compressed = false;
  CHECK(*SerializeModule(*read) == plain);
  CHECK(Executable::FromBytes(Share(file)));
}

TEST_CASE("constants keep their place outside, used where they lie") {
  Module module = Sample("add_constant");
  module.compressed = true;
  const SharedBytes file = *AlignedCopy(*SerializeModule(module));
  OpenOptions options;
  options.verify_data = true;
  const Result<Executable> executable = Executable::FromBytes(file, options);
  REQUIRE(executable);
  const Span<const std::byte> constant = executable->module().constants[0].stored.view;
  CHECK(constant.data() == file.view.data() + file.view.size() - 16);
}

TEST_CASE("tables are compressed if that saves a 64th of the file, and no less") {
  Module module = Sample("add_constant");
  const std::size_t plain = SerializeModule(module)->size();
  module.compressed = true;
  const std::size_t saved = plain - SerializeModule(module)->size();
  REQUIRE(saved > 100);
  // Constants of so many bytes that what is saved is just enough, or just not.
  const auto compressed_beside = [&](std::size_t bytes) {
    Module larger = module;
    larger.constants[0] =
        test::DataConstant("w", TensorType(kFloat32, {static_cast<std::int64_t>(bytes / 4)}),
                           std::vector<float>(bytes / 4, 1.5F));
    return ReadModule(Share(*SerializeModule(larger)))->compressed;
  };
  CHECK(compressed_beside(32 * saved));
  CHECK_FALSE(compressed_beside(80 * saved));
}

TEST_CASE("a model of a bundle is not compressed") {
  Module module = Sample("shapes");
  module.compressed = true;
  const Bytes file = *SerializeModule(module);
  const Result<Executable> executable = Executable::FromBytes(Share(file));
  const BundledExecutable model{"m", *executable};
  const auto bundle = BundleFromBytes(Share(*SerializeBundle({&model, 1})));
  REQUIRE(bundle);
  CHECK_FALSE((*bundle)[0].executable.module().compressed);
}

TEST_CASE(
    "a content of no bytes, or of more than the frames may have, is refused before it is decompressed") {
  const std::string refused = "its content has no bytes, or too many for its size";
  const Bytes frames(10);
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{641}, ~std::uint64_t{0}}) {
    CHECK_THAT(ReadMessage(File({Compressed(size, frames)})), Catch::EndsWith(refused));
  }
  CHECK_THAT(ReadMessage(File({Compressed(640, frames)})), Catch::EndsWith("Unknown frame descriptor"));
  // 32 MiB of zeros fit into 1,100 bytes.
  const Bytes zeros(std::size_t{32} << 20);
  CHECK_THAT(ReadMessage(FileOf(zeros)), Catch::EndsWith(refused));
  CHECK_THAT(ReadMessage(File({MakeSection(SectionId::kCompressed, Bytes(7))})),
             Catch::EndsWith("is malformed at its byte 0 of 7: it ends inside a record"));
}

TEST_CASE("no content is larger than a GiB, however large the frames are") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  CHECK(MostDecompressedBytes(10) == 640);
  CHECK(MostDecompressedBytes(kGiB / 64) == kGiB);
  CHECK(MostDecompressedBytes(~std::uint64_t{0}) == kGiB);
}

TEST_CASE("damaged frames, and frames of another size than stated, are refused") {
  const Bytes content = *SerializeModule(Sample("shapes"));
  Bytes frames = Frame(content);
  CHECK(ReadMessage(File({Compressed(content.size() + 1, frames)})) ==
        "section 'compressed' is damaged: it decompresses to " + std::to_string(content.size()) +
            " bytes, expected " + std::to_string(content.size() + 1));
  CHECK(ReadMessage(File({Compressed(content.size() - 1, frames)})) ==
        "section 'compressed' is damaged: Destination buffer is too small");
  frames.pop_back();
  CHECK(ReadMessage(File({Compressed(content.size(), frames)})) ==
        "section 'compressed' is damaged: Src size is incorrect");
}

TEST_CASE("what is wrong with the content is said of the section") {
  Bytes content = *SerializeModule(Sample("shapes"));
  content.back() ^= std::byte{1};
  CHECK_THAT(ReadMessage(FileOf(content)),
             Catch::StartsWith("section 'compressed': section 'code' at offset ") &&
                 Catch::Contains(" is damaged: its bytes have checksum "));
  CHECK_THAT(ReadMessage(FileOf(Bytes(100))),
             Catch::StartsWith("section 'compressed': this is not a Rewire executable"));
}

TEST_CASE("no section is in a compressed file twice, and constants' bytes are not compressed") {
  Module module = Sample("add_constant");
  const Bytes with_data = *SerializeModule(module);
  CHECK(ReadMessage(FileOf(with_data)) == "section 'data' is inside section 'compressed'");
  const Bytes content = *SerializeModule(Sample("shapes"));
  const Bytes again = FileOf(FileOf(content));
  CHECK(ReadMessage(again) == "section 'compressed': section 15 is there twice");
  Array<container::Section> sections;
  sections.push_back(Compressed(content.size(), Frame(content)));
  sections.push_back(MakeSection(SectionId::kCode, Bytes(4)));
  CHECK(ReadMessage(File(std::move(sections))) == "section 'compressed': section 8 is there twice");
}

TEST_CASE("a section that the content lacks may stand beside it") {
  Module module = Sample("shapes");
  module.metadata.clear();
  const Bytes content = *SerializeModule(module);
  Bytes metadata(4);  // a list of no entries
  Array<container::Section> sections;
  sections.push_back(Compressed(content.size(), Frame(content)));
  sections.push_back(MakeSection(SectionId::kMetadata, metadata));
  CHECK(ReadModule(Share(File(std::move(sections)))));
}

TEST_CASE("a bundle is not compressed") {
  const BundledExecutable model{"m", *Executable::FromModule(Sample("shapes"))};
  const Bytes bundle = *SerializeBundle({&model, 1});
  CHECK_THAT(ReadMessage(FileOf(bundle)), Catch::Contains("this is a bundle of several models"));
  const auto read = BundleFromBytes(Share(FileOf(bundle)));
  REQUIRE_FALSE(read);
  CHECK(read.error().message() == "this is no bundle: it has section 'compressed'");
}

#endif

}  // namespace
}  // namespace rewire
