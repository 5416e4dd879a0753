// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/npy.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/executable_format/tensor_files/support.h"

namespace rewire {
namespace {

using test::Bytes;
using test::Counting;
using test::Folder;
using test::Same;
using test::Text;

// A file as numpy lays it out, with any header.
std::string NpyFile(const std::string& header, const std::string& data, int major = 1) {
  std::string size;
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) size += static_cast<char>(header.size() >> (8 * i));
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' + size + header + data;
}

std::string Header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string NpyMessage(const std::string& file) {
  const Result<HostTensor> tensor = ParseNpy(Bytes(file));
  return tensor ? "no error" : tensor.error().message();
}

TEST_CASE("npy: a shape whose text is longer than version 1 can say is refused") {
  const std::vector<std::int64_t> shape(30000, 1);
  CHECK(NpyPrefix(kFloat32, shape).error().message() == "its shape has too many dimensions");
}

TEST_CASE("npy: every element type that numpy has comes back") {
  std::vector<DLDataType> dtypes = {
      kBool8, kFloat16, kFloat32, kFloat64, MakeDType(kComplex, 64), MakeDType(kComplex, 128)};
  for (const int bits : {8, 16, 32, 64}) {
    dtypes.push_back(MakeDType(kInt, bits));
    dtypes.push_back(MakeDType(kUInt, bits));
  }
  const Folder folder;
  for (const DLDataType dtype : dtypes) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {3}, {0}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4}}) {
      const HostTensor tensor = Counting(dtype, shape);
      INFO(TensorTypeText(dtype, shape));
      REQUIRE(WriteNpy(folder / "x.npy", tensor).has_value());
      const Result<HostTensor> read = ReadNpy(folder / "x.npy");
      if (!read) FAIL(read.error().message());
      CHECK(Same(*read, tensor));
    }
  }
}

TEST_CASE("npy: what numpy writes, byte for byte") {
  // numpy.save of numpy.arange(3, dtype='<i4'), version 1.0.
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
  header.resize(117, ' ');
  header += '\n';
  const std::string file = NpyFile(header, std::string("\0\0\0\0\1\0\0\0\2\0\0\0", 12));
  const Result<HostTensor> tensor = ParseNpy(Bytes(file));
  REQUIRE(tensor.has_value());
  CHECK((tensor->dtype == kInt32));
  CHECK(tensor->shape == std::vector<std::int64_t>{3});
  const Result<std::vector<std::byte>> written = SerializeNpy(*tensor);
  REQUIRE(written.has_value());
  const std::string text(reinterpret_cast<const char*>(written->data()), written->size());
  CHECK(text.substr(0, 10 + 58) == file.substr(0, 10 + 58).replace(8, 2, text.substr(8, 2)));
  CHECK((text.size() - 12) % 64 == 0);
}

TEST_CASE("npy: headers of other versions and writers") {
  for (const int major : {1, 2, 3}) {
    CHECK(NpyMessage(NpyFile(Header("<f4", "(1,)"), "abcd", major)) == "no error");
  }
  CHECK(NpyMessage(NpyFile("{\"shape\":(1L,),\"fortran_order\":False,\"descr\":\"<f4\"}", "abcd")) ==
        "no error");
  CHECK(NpyMessage(NpyFile(Header("=f4", "(1,)"), "abcd")) == "no error");
  CHECK(NpyMessage(NpyFile(Header("|u1", "()"), "a")) == "no error");
}

TEST_CASE("npy: column-major arrays become row-major") {
  // [[1, 2, 3], [4, 5, 6]] stored column by column.
  const Result<HostTensor> matrix = ParseNpy(Bytes(NpyFile(Header("|u1", "(2, 3)", "True"), "\1\4\2\5\3\6")));
  REQUIRE(matrix.has_value());
  CHECK(matrix->shape == std::vector<std::int64_t>{2, 3});
  CHECK(Text(matrix->bytes) == "\1\2\3\4\5\6");
  const Result<HostTensor> cube = ParseNpy(
      Bytes(NpyFile(Header("<i2", "(2, 1, 3)", "True"), std::string("\1\0\4\0\2\0\5\0\3\0\6\0", 12))));
  REQUIRE(cube.has_value());
  CHECK(Text(cube->bytes) == std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12));
  CHECK(NpyMessage(NpyFile(Header("|u1", "(2, 0, 9999999999)", "True"), "")) == "no error");
}

TEST_CASE("npy: data that lies misaligned is copied to where it can be read") {
  std::string header = Header("<f8", "(1,)");
  while ((10 + header.size()) % 8 != 3) header += ' ';
  const Result<HostTensor> tensor = ParseNpy(Bytes(NpyFile(header, "abcdefgh")));
  REQUIRE(tensor.has_value());
  CHECK(reinterpret_cast<std::uintptr_t>(tensor->bytes.view.data()) % 8 == 0);
  CHECK(Text(tensor->bytes) == "abcdefgh");
}

TEST_CASE("npy: strings are code points, with zeros behind them") {
  const std::string content("a\0\0\0b\0\0\0c\0\0\0\xe9\0\0\0\0\0\0\0\0\0\0\0", 24);
  const std::string file = NpyFile(Header("<U3", "(2,)"), content);
  const Result<HostTensor> tensor = ParseNpy(Bytes(file));
  REQUIRE(tensor);
  CHECK((tensor->dtype.code == kDLOpaqueHandle && tensor->dtype.bits == 32 && tensor->dtype.lanes == 3));
  CHECK(Text(tensor->bytes) == content);
  const Result<std::vector<std::byte>> written = SerializeNpy(*tensor);
  REQUIRE(written);
  const std::string text(reinterpret_cast<const char*>(written->data()), written->size());
  CHECK_THAT(text, Catch::Contains("'descr': '<U3'") && Catch::EndsWith(content));
}

TEST_CASE("npy: bad files") {
  CHECK(NpyMessage("") == "not an .npy file, which begins with \\x93NUMPY; use numpy.save to write one");
  CHECK(NpyMessage("PK\3\4 is a zip") ==
        "not an .npy file, which begins with \\x93NUMPY; use numpy.save to write one");
  CHECK(NpyMessage(NpyFile("{}", "", 9)) ==
        "it is of version 9 of the .npy format; versions 1 to 3 are supported");
  CHECK(NpyMessage(NpyFile(Header("<f4", "(1,)"), "").substr(0, 30)) == "it ends inside its header");
  CHECK(NpyMessage(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{", 13)) == "it ends inside its header");
  CHECK(NpyMessage(NpyFile(Header("<f4", "(2,)"), "abcd")) == "f32[2] has 8 bytes, 4 follow the header");
  CHECK(NpyMessage(NpyFile(Header("<f4", "(1,)"), "abcde")) == "f32[1] has 4 bytes, 5 follow the header");
  const std::string damaged = "its header is damaged: ";
  CHECK(NpyMessage(NpyFile("", "")) == damaged + "no '{'");
  CHECK(NpyMessage(NpyFile("{", "")) == damaged + "no key");
  CHECK(NpyMessage(NpyFile("{'descr'", "")) == damaged + "no key");
  CHECK(NpyMessage(NpyFile("{'descr': 4}", "")) == damaged + "'descr' is no string");
  CHECK(NpyMessage(NpyFile("{'descr': '<f4', 'shape': (1,)}", "abcd")) ==
        damaged + "it lacks 'descr', 'fortran_order' or 'shape'");
  CHECK(NpyMessage(NpyFile("{'fortran_order': Maybe}", "")) ==
        damaged + "'fortran_order' is not True or False");
  CHECK(NpyMessage(NpyFile("{'shape': 3}", "")) == damaged + "'shape' is no tuple of sizes");
  CHECK(NpyMessage(NpyFile("{'shape': (-1,)}", "")) == damaged + "'shape' is no tuple of sizes");
  CHECK(NpyMessage(NpyFile("{'shape': (99999999999999999999,)}", "")) ==
        damaged + "'shape' is no tuple of sizes");
  CHECK(NpyMessage(NpyFile("{'shape': (1", "")) == damaged + "'shape' is no tuple of sizes");
  CHECK(NpyMessage(NpyFile("{'color': 1}", "")) == damaged + "unknown key 'color'");
  CHECK(NpyMessage(NpyFile("{'fortran_order': True 'shape': (1,)}", "")) == damaged + "no ',' between keys");
  CHECK(NpyMessage(NpyFile(Header("<f4", "(1,)") + "x", "abcd")) == damaged + "text after '}'");
  CHECK(NpyMessage(NpyFile(Header("<f4", "(4611686018427387904, 4)"), "abcd")) ==
        damaged + "f32[4611686018427387904, 4] has more bytes than 64 bits can count");
  const auto unsupported = [](const std::string& descr, const std::string& why) {
    CHECK(NpyMessage(NpyFile(Header(descr, "(1,)"), "")) ==
          "its element type '" + descr + "' is not supported: " + why);
  };
  unsupported(">f4", "big-endian; convert it with array.astype(array.dtype.newbyteorder('<'))");
  unsupported("<f16", "DLPack has no such size");
  unsupported("<f3", "DLPack has no such size");
  unsupported("<b2", "DLPack has no such size");
  unsupported("|O8", "only bool, integers, floats, complex numbers and str are");
  unsupported("|U5", "only bool, integers, floats, complex numbers and str are");
  unsupported("<U65536", "its strings have room for more than 65535 characters");
  unsupported("|V2", "only bool, integers, floats, complex numbers and str are");
  unsupported("f4", "expected a type such as '<f4'");
  unsupported("<f", "expected a type such as '<f4'");
  unsupported("<f4x", "expected a type such as '<f4'");
  CHECK(NpyMessage(NpyFile("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "")) ==
        "it holds records; store each field as an array of its own");
}

TEST_CASE("npy: every truncation of a file is refused") {
  const Result<std::vector<std::byte>> whole = SerializeNpy(Counting(kInt32, {2, 3}));
  REQUIRE(whole.has_value());
  for (std::size_t size = 0; size < whole->size(); ++size) {
    INFO(size);
    CHECK_FALSE(ParseNpy(CopyBytes({whole->data(), size})).has_value());
  }
}

TEST_CASE("npy: errors of files name them") {
  const Folder folder;
  const Result<HostTensor> missing = ReadNpy(folder / "no.npy");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code() == StatusCode::kNotFound);
  test::WriteText(folder / "bad.npy", "hello");
  const Result<HostTensor> bad = ReadNpy(folder / "bad.npy");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().code() == StatusCode::kInvalidFile);
  CHECK(bad.error().message() ==
        (folder / "bad.npy") +
            ": not an .npy file, which begins with \\x93NUMPY; use numpy.save to write one");
  const Status written = WriteNpy(folder / "x.npy", Counting(MakeDType(kBFloat, 16), {1}));
  REQUIRE_FALSE(written.has_value());
  CHECK(written.error().message() ==
        (folder / "x.npy") + ": numpy has no element type bf16; write a .safetensors file");
}

}  // namespace
}  // namespace rewire
