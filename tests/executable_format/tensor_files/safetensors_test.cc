// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/safetensors.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/tensor_files/support.h"
#include "rewire/tests/support/paths.h"

namespace rewire {
namespace {

using test::Bytes;
using test::Counting;
using test::Folder;
using test::Same;

std::string SafetensorsFile(const std::string& header, const std::string& data) {
  std::string size;
  for (int i = 0; i < 8; ++i) size += static_cast<char>(header.size() >> (8 * i));
  return size + header + data;
}

std::string SafetensorsMessage(const std::string& file) {
  const Result<std::vector<NamedTensor>> read = ParseSafetensors(Bytes(file));
  return read ? "no error" : read.error().message();
}

// A header with one tensor 'x' of four data bytes, and one thing in it replaced.
std::string WithEntry(const std::string& entry) {
  return SafetensorsMessage(SafetensorsFile("{\"x\":" + entry + "}", "abcd"));
}

TEST_CASE("safetensors: every element type that the format has comes back") {
  const Folder folder;
  std::vector<NamedTensor> tensors;
  std::vector<DLDataType> dtypes = {kBool8,   kFloat16, MakeDType(kBFloat, 16),
                                    kFloat32, kFloat64, MakeDType(kComplex, 64)};
  for (const int bits : {8, 16, 32, 64}) {
    dtypes.push_back(MakeDType(kInt, bits));
    dtypes.push_back(MakeDType(kUInt, bits));
  }
  for (const DLDataType dtype : dtypes) {
    CHECK_FALSE(SafetensorsDType(dtype).empty());
    tensors.push_back({DTypeName(dtype) + ".scalar", Counting(dtype, {})});
    tensors.push_back({DTypeName(dtype) + ".matrix \"quoted\" \xc3\xa4", Counting(dtype, {3, 5})});
    tensors.push_back({DTypeName(dtype) + ".empty", Counting(dtype, {2, 0})});
  }
  REQUIRE(WriteSafetensors(folder / "a.safetensors", tensors).has_value());
  const Result<std::vector<NamedTensor>> read = ReadSafetensors(folder / "a.safetensors");
  if (!read) FAIL(read.error().message());
  REQUIRE(read->size() == tensors.size());
  for (const NamedTensor& tensor : tensors) {
    bool found = false;
    for (const NamedTensor& other : *read)
      found = found || (other.name == tensor.name && Same(other.tensor, tensor.tensor));
    INFO(tensor.name);
    CHECK(found);
  }
  CHECK(SafetensorsDType(MakeDType(kInt, 4)).empty());
}

TEST_CASE("safetensors: a file of another program") {
  const Result<std::vector<NamedTensor>> read =
      ReadSafetensors(std::string(test::SourceDir()) + "/examples/digits/weights.safetensors");
  if (!read) FAIL(read.error().message());
  CHECK_FALSE(read->empty());
}

TEST_CASE("safetensors: metadata is passed over") {
  CHECK(SafetensorsMessage(SafetensorsFile(
            R"({"__metadata__":{"format":"pt"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   )",
            "abcd")) == "no error");
}

TEST_CASE("safetensors: bad files") {
  CHECK(SafetensorsMessage("") ==
        "not a .safetensors file, or it ends inside its header; safetensors.numpy.save_file writes one");
  CHECK(SafetensorsMessage("1234567") ==
        "not a .safetensors file, or it ends inside its header; safetensors.numpy.save_file writes one");
  CHECK(SafetensorsMessage(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)) ==
        "not a .safetensors file, or its header is damaged; safetensors.numpy.save_file writes one");
  CHECK(SafetensorsMessage(std::string("\x64\0\0\0\0\0\0\0{}", 10)) ==
        "not a .safetensors file, or it ends inside its header; safetensors.numpy.save_file writes one");
  for (const char* header : {"", "{", "[]", "3", "{\"x\":}", "{} {}", "\xff\xff"}) {
    CAPTURE(header);
    CHECK(SafetensorsMessage(SafetensorsFile(header, "")) == "its header is no JSON object");
  }
  CHECK(
      SafetensorsMessage(SafetensorsFile(
          R"({"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
          "a")) == "its header names tensor 'x' twice");
  CHECK(WithEntry("3") == "tensor 'x' is no JSON object");
  CHECK(WithEntry(R"({"shape":[1],"data_offsets":[0,4]})") == "tensor 'x' has no dtype");
  CHECK(WithEntry(R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})") == "tensor 'x' has no dtype");
  CHECK(WithEntry(R"({"dtype":"F32","data_offsets":[0,4]})") == "tensor 'x' has no shape");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[1]})") == "tensor 'x' has no data_offsets");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})") ==
        "tensor 'x' has no data_offsets");
  CHECK(WithEntry(R"({"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]})") ==
        "tensor 'x' has dtype 'F8_E5M2', which is not supported");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})") ==
        "tensor 'x' has a dimension that is no size");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})") ==
        "tensor 'x' has a dimension that is no size");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})") ==
        "tensor 'x' has a dimension that is no size");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]})") ==
        "tensor 'x' f32[4611686018427387904, 4] has more bytes than 64 bits can count");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,"4"]})") ==
        "tensor 'x' has an offset that is no number");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})") ==
        "tensor 'x' has bytes 4 to 0, the file has 4 of data");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})") ==
        "tensor 'x' has bytes 0 to 8, the file has 4 of data");
  CHECK(WithEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})") ==
        "tensor 'x' is f32[2] and needs 8 bytes, its range has 4");
  CHECK(WithEntry(R"({"dtype":"U8","shape":[3],"data_offsets":[0,3]})") == "1 bytes follow its last tensor");
  CHECK(WithEntry(R"({"dtype":"U8","shape":[3],"data_offsets":[1,4]})") ==
        "tensor 'x' begins at byte 1, the tensors before it end at 0");
  CHECK(
      SafetensorsMessage(SafetensorsFile(
          R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          "abcd")) == "tensor 'y' begins at byte 2, the tensors before it end at 3");
}

TEST_CASE("safetensors: escapes in names, and what is no JSON") {
  const auto names = [](const std::string& name) {
    const Result<std::vector<NamedTensor>> read = ParseSafetensors(
        Bytes(SafetensorsFile("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a")));
    return read ? read->at(0).name : read.error().message();
  };
  CHECK(names(R"(a\"\\\/\b\f\n\r\t)") == "a\"\\/\b\f\n\r\t");
  CHECK(names(R"(\u0041\u00e4\u20AC\ud83d\ude00)") == "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const char* bad : {"\\x", "\\u12G4", "\\u12", "\\", "\n", "\\ud83d", "\\ude00"}) {
    CAPTURE(bad);
    CHECK(names(bad) == "its header is no JSON object");
  }
  for (const char* value : {"01", "1.", ".5", "1e", "+1", "-", "tru", "[1,]", "[1 2]", "{\"a\":1,}",
                            "{\"a\"}", "{a:1}", "[1}", "{\"a\":1]", "1,2", "nan"}) {
    CAPTURE(value);
    CHECK(WithEntry(value) == "its header is no JSON object");
  }
  for (const char* value : {"0", "-0.5e+10", "true", "null", "[ ]", "[[1],[{}]]", "\"s\""}) {
    CAPTURE(value);
    CHECK(WithEntry(value) == "tensor 'x' is no JSON object");
  }
  CHECK(WithEntry(R"({"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]})") ==
        "tensor 'x' names 'dtype' twice");
}

TEST_CASE("safetensors: JSON nested a million deep is refused without recursion") {
  const std::string deep = "{\"x\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  CHECK(SafetensorsMessage(SafetensorsFile(deep, "")) == "tensor 'x' is no JSON object");
}

TEST_CASE("safetensors: misaligned tensors are copied to where they can be read") {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  const Result<std::vector<NamedTensor>> read = ParseSafetensors(Bytes(SafetensorsFile(header, "abcde")));
  REQUIRE(read.has_value());
  CHECK(reinterpret_cast<std::uintptr_t>((*read)[1].tensor.bytes.view.data()) % 4 == 0);
  CHECK(test::Text((*read)[1].tensor.bytes) == "bcde");
}

TEST_CASE("safetensors: what cannot be written") {
  const Folder folder;
  const std::string path = folder / "a.safetensors";
  const auto message = [&](std::vector<NamedTensor> tensors) {
    const Status written = WriteSafetensors(path, tensors);
    CHECK_FALSE(std::filesystem::exists(path));
    return written ? "no error" : written.error().message();
  };
  const HostTensor byte = Counting(kUInt8, {1});
  const std::string name_error = ": the name is used twice, reserved or not UTF-8";
  CHECK(message({{"x", byte}, {"x", byte}}) == path + ": tensor 'x'" + name_error);
  CHECK(message({{"__metadata__", byte}}) == path + ": tensor '__metadata__'" + name_error);
  CHECK(message({{"\xff", byte}}) == path + ": tensor '\xff'" + name_error);
  CHECK(message({{"x", Counting(MakeDType(kInt, 4), {1})}}) ==
        path + ": tensor 'x': .safetensors has no element type i4");
  CHECK(message({{"x", HostTensor{kUInt8, {2}, byte.bytes}}}) ==
        path + ": tensor 'x': u8[2] has 2 bytes, 1 are given");
}

}  // namespace
}  // namespace rewire
