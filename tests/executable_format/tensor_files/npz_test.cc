// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/npz.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/tensor_files/support.h"

namespace rewire {
namespace {

using test::Counting;
using test::Folder;
using test::ReadText;
using test::Same;
using test::WriteText;

std::vector<NamedTensor> Sample() {
  return {{"x", Counting(kFloat32, {2, 3})},
          {"fc1.weight/0", Counting(kInt64, {})},
          {"long", Counting(kUInt8, {100'000})},
          {"empty", Counting(kFloat32, {0, 4})}};
}

std::string NpzMessage(const std::string& path) {
  const Result<std::vector<NamedTensor>> read = ReadNpz(path);
  return read ? "no error" : read.error().message();
}

TEST_CASE("npz: archives come back, stored and deflated") {
  const Folder folder;
  for (const NpzCompression compression : {NpzCompression::kNone, NpzCompression::kDeflate}) {
    REQUIRE(WriteNpz(folder / "a.npz", Sample(), compression).has_value());
    const Result<std::vector<NamedTensor>> read = ReadNpz(folder / "a.npz");
    if (!read) FAIL(read.error().message());
    const std::vector<NamedTensor> sample = Sample();
    REQUIRE(read->size() == sample.size());
    for (std::size_t i = 0; i < sample.size(); ++i) {
      CHECK((*read)[i].name == sample[i].name);
      CHECK(Same((*read)[i].tensor, sample[i].tensor));
    }
  }
  CHECK(ReadText(folder / "a.npz").size() < 20'000);
}

TEST_CASE("npz: the same tensors give the same file") {
  const Folder folder;
  REQUIRE(WriteNpz(folder / "a.npz", Sample()).has_value());
  REQUIRE(WriteNpz(folder / "b.npz", Sample()).has_value());
  CHECK(ReadText(folder / "a.npz") == ReadText(folder / "b.npz"));
}

TEST_CASE("npz: what is no archive of arrays is refused") {
  const Folder folder;
  const std::string path = folder / "a.npz";
  CHECK(ReadNpz(path).error().code() == StatusCode::kNotFound);
  WriteText(path, "");
  CHECK(NpzMessage(path) == path + ": not an .npz file: Not a zip archive");
  WriteText(path, "hello");
  CHECK(NpzMessage(path) == path + ": not an .npz file: Not a zip archive");

  REQUIRE(WriteNpz(path, std::vector<NamedTensor>{{"x", Counting(kUInt8, {4})}}).has_value());
  const std::string good = ReadText(path);
  std::string renamed = good;
  for (std::size_t at = renamed.find("x.npy"); at != std::string::npos; at = renamed.find("x.npy")) {
    renamed.replace(at, 5, "x.txt");
  }
  WriteText(path, renamed);
  CHECK(NpzMessage(path) == path + ": entry 'x.txt' is no .npy file");

  std::string damaged = good;
  damaged[good.find("\1\2\3\4")] = '\7';
  WriteText(path, damaged);
  CHECK(NpzMessage(path) == path + ": entry 'x.npy': it is damaged: its checksum or size differs");
}

TEST_CASE("npz: a damaged archive is never a wrong answer") {
  const Folder folder;
  const std::string path = folder / "a.npz";
  const std::vector<NamedTensor> sample = {{"x", Counting(kInt32, {2, 3})}, {"y", Counting(kUInt8, {300})}};
  REQUIRE(WriteNpz(path, sample, NpzCompression::kDeflate).has_value());
  const std::string good = ReadText(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
    WriteText(path, flipped);
    const Result<std::vector<NamedTensor>> read = ReadNpz(path);
    if (!read) continue;
    for (const NamedTensor& member : *read) {
      INFO("byte " << at);
      CHECK((Same(member.tensor, sample[0].tensor) || Same(member.tensor, sample[1].tensor)));
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    WriteText(path, good.substr(0, size));
    CHECK_FALSE(ReadNpz(path).has_value());
  }
}

TEST_CASE("npz: an entry whose claimed size no archive can hold allocates nothing") {
  const Folder folder;
  const std::string path = folder / "a.npz";
  REQUIRE(WriteNpz(path, std::vector<NamedTensor>{{"x", Counting(kUInt8, {4})}}).has_value());
  std::string file = ReadText(path);
  // The uncompressed size of the central directory: offset 24 behind its signature.
  const std::size_t directory = file.find("PK\1\2");
  REQUIRE(directory != std::string::npos);
  file.replace(directory + 24, 4, "\xff\xff\xff\x7f");
  WriteText(path, file);
  const std::string message = NpzMessage(path);
  CHECK(message.find(path) == 0);
  CHECK(message != "no error");
}

TEST_CASE("npz: entries that share their bytes are refused before they are unpacked") {
  const Folder folder;
  const std::string path = folder / "a.npz";
  const std::vector<NamedTensor> sample = {{"x", Counting(kUInt8, {4000})}, {"y", Counting(kUInt8, {1})}};
  REQUIRE(WriteNpz(path, sample).has_value());
  std::string file = ReadText(path);
  // The second entry of the directory gets the checksum, the sizes and the position of the first.
  const std::size_t first = file.find("PK\1\2");
  const std::size_t second = file.find("PK\1\2", first + 1);
  REQUIRE(second != std::string::npos);
  file.replace(second + 16, 12, file.substr(first + 16, 12));
  file.replace(second + 42, 4, file.substr(first + 42, 4));
  WriteText(path, file);
  CHECK(NpzMessage(path) == path + ": entry 'y.npy': the entries are larger than the archive");
}

TEST_CASE("npz: what cannot be written") {
  const Folder folder;
  const std::string path = folder / "a.npz";
  const std::vector<NamedTensor> twice = {{"x", Counting(kUInt8, {1})}, {"x", Counting(kUInt8, {1})}};
  CHECK(WriteNpz(path, twice).error().message() == path + ": two tensors are named 'x'");
  const std::vector<NamedTensor> brain = {{"x", Counting(MakeDType(kBFloat, 16), {1})}};
  CHECK(WriteNpz(path, brain).error().message() ==
        path + ": tensor 'x': numpy has no element type bf16; write a .safetensors file");
  const Status nowhere = WriteNpz(folder / "no/such/folder/a.npz", Sample());
  REQUIRE_FALSE(nowhere.has_value());
  CHECK(nowhere.error().code() == StatusCode::kIo);
}

}  // namespace
}  // namespace rewire
