// SPDX-License-Identifier: Apache-2.0
// Element types as text, in the runtime of tvm-ffi that Rewire brings.
#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "rewire/tests/vm/loader/ffi_shim/shim_runtime.h"

namespace rewire::test {
namespace {

class DTypes {
 public:
  std::string TextOf(DLDataType type) const {
    RewireFFIAny text{};
    REQUIRE(runtime_.Get<int(const DLDataType*, RewireFFIAny*)>("TVMFFIDataTypeToString")(&type, &text) == 0);
    return TakeText(&text);
  }
  int Read(const std::string& text, DLDataType* type) const {
    const RewireFFIByteArray bytes = BytesOf(text);
    return runtime_.Get<int(const RewireFFIByteArray*, DLDataType*)>("TVMFFIDataTypeFromString")(&bytes,
                                                                                                 type);
  }
  std::string TakeError() const { return runtime_.TakeError(); }

 private:
  ShimRuntime runtime_;
};

TEST_CASE("every element type comes back from its text, with any number of lanes") {
  const DTypes dtypes;
  std::set<std::string> texts;
  std::size_t count = 0;
  const auto check = [&](std::uint8_t code, std::uint8_t bits) {
    for (const std::uint16_t lanes : {1, 2, 4, 65535}) {
      const std::string text = dtypes.TextOf({code, bits, lanes});
      texts.insert(text);
      ++count;
      DLDataType read{};
      INFO(text);
      CHECK(dtypes.Read(text, &read) == 0);
      CHECK(std::array<int, 3>{read.code, read.bits, read.lanes} == std::array<int, 3>{code, bits, lanes});
    }
  };
  for (const std::uint8_t code : {kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex}) {
    for (const std::uint8_t bits : {1, 4, 8, 16, 32, 64, 128}) check(code, bits);
  }
  // Handles, bools, and floats of 8, 6 and 4 bits have names of their own.
  check(kDLOpaqueHandle, 64);
  for (std::uint8_t code = 6; code <= 14; ++code) check(code, 8);
  check(15, 6);
  check(16, 6);
  check(17, 4);
  CHECK(texts.size() == count);  // no text means two types
}

TEST_CASE("texts of element types are those of tvm-ffi") {
  const DTypes dtypes;
  CHECK(dtypes.TextOf({kDLFloat, 32, 1}) == "float32");
  CHECK(dtypes.TextOf({kDLInt, 8, 4}) == "int8x4");
  CHECK(dtypes.TextOf({kDLBfloat, 16, 1}) == "bfloat16");
  CHECK(dtypes.TextOf({6, 8, 1}) == "bool");
  CHECK(dtypes.TextOf({10, 8, 2}) == "float8_e4m3fnx2");
  CHECK(dtypes.TextOf({3, 0, 0}) == "void");
  CHECK(dtypes.TextOf({200, 12, 1}) == "custom[200]12");
  DLDataType read{};
  CHECK(dtypes.Read("int", &read) == 0);  // 32 bits where none are said
  CHECK((read.code == kDLInt && read.bits == 32 && read.lanes == 1));
  CHECK(dtypes.Read("uintx3", &read) == 0);
  CHECK((read.code == kDLUInt && read.bits == 32 && read.lanes == 3));
  for (const char* text : {"", "void"}) {
    CHECK(dtypes.Read(text, &read) == 0);
    CHECK((read.code == kDLOpaqueHandle && read.bits == 0 && read.lanes == 0));
  }
}

TEST_CASE("what is no element type is refused with the text") {
  const DTypes dtypes;
  for (const std::string text : {"flout32", "float32x", "float32x0", "float0", "float32 ", "float999",
                                 "int8x70000", "x4", "float8_e4m3fnn", "32"}) {
    DLDataType read{};
    CHECK(dtypes.Read(text, &read) == -1);
    CHECK(dtypes.TakeError() == "ValueError: '" + text + "' is no element type; 'float32' and 'int8x4' are");
  }
}

}  // namespace
}  // namespace rewire::test
