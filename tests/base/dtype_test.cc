// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/dtype.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

// Inside the namespace, because DLDataType's comparison is declared there and its type elsewhere.
namespace rewire {

TEST_CASE("names and types correspond") {
  const std::vector<std::pair<std::string, DLDataType>> table = {
      {"f32", kFloat32},
      {"f64", kFloat64},
      {"f16", kFloat16},
      {"bf16", MakeDType(kBFloat, 16)},
      {"i8", kInt8},
      {"i64", kInt64},
      {"u8", kUInt8},
      {"u1", MakeDType(kUInt, 1)},
      {"bool", kBool8},
      {"c64", MakeDType(kComplex, 64)},
      {"h64", MakeDType(kOpaqueHandle, 64)},
      {"f32x4", MakeDType(kFloat, 32, 4)},
      {"i4x65535", MakeDType(kInt, 4, 65535)},
  };
  for (const auto& [name, type] : table) {
    CAPTURE(name);
    CHECK(DTypeName(type) == name);
    const std::optional<DLDataType> parsed = ParseDType(name);
    REQUIRE(parsed.has_value());
    CHECK((*parsed == type));
  }
}

TEST_CASE("numpy's names are understood") {
  CHECK((ParseDType("float32").value() == kFloat32));
  CHECK((ParseDType("int64").value() == kInt64));
  CHECK((ParseDType("uint8").value() == kUInt8));
}

TEST_CASE("narrow floats have one name each") {
  for (const char* name : {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu", "f4e2m1fn"}) {
    CAPTURE(name);
    const std::optional<DLDataType> type = ParseDType(name);
    REQUIRE(type);
    CHECK(DTypeName(*type) == name);
    CHECK(IsValidDType(*type));
    CHECK(ElementBytes(*type) == 1);
  }
  CHECK((ParseDType("f8e5m2x2").value() == MakeDType(kFloat8E5M2, 8, 2)));
  CHECK_FALSE(ParseDType("f8e5m3").has_value());
}

TEST_CASE("what is no type is refused") {
  for (const char* name : {"", "f", "32", "x", "q8", "f0", "f129", "f32x", "f32x0", "f32x65536", "f32x4 ",
                           "f-32", "boolean", "bool0", "bool8x", "f99999999999999999999", "float"}) {
    CAPTURE(name);
    CHECK_FALSE(ParseDType(name).has_value());
  }
}

TEST_CASE("element sizes count lanes and round up to whole bytes") {
  CHECK(ElementBytes(kFloat32) == 4);
  CHECK(ElementBytes(kBool8) == 1);
  CHECK(ElementBytes(MakeDType(kInt, 4)) == 1);
  CHECK(ElementBytes(MakeDType(kInt, 4, 3)) == 2);
  CHECK(ElementBytes(MakeDType(kFloat, 128, 65535)) == 16 * 65535);
}

TEST_CASE("what a file may name as a type") {
  CHECK(IsValidDType(kBool8));
  CHECK(IsValidDType(MakeDType(kFloat, 128)));
  CHECK(IsValidDType(MakeDType(kFloat8E5M2, 8)));
  CHECK(IsValidDType(MakeDType(kFloat4E2M1FN, 4)));
  CHECK_FALSE(IsValidDType(DLDataType{7, 8, 1}));
  CHECK_FALSE(IsValidDType(MakeDType(kFloat8E5M2, 4)));
  CHECK_FALSE(IsValidDType(DLDataType{kFloat8E5M2, 8, 0}));
  CHECK_FALSE(IsValidDType(DLDataType{0, 0, 1}));
  CHECK_FALSE(IsValidDType(DLDataType{0, 129, 1}));
  CHECK_FALSE(IsValidDType(DLDataType{0, 8, 0}));
}

}  // namespace rewire
