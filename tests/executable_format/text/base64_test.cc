// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/base64.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rewire::text {
namespace {

std::vector<std::byte> Bytes(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

TEST_CASE("the examples of RFC 4648") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xff\xfe\xfb", "//77"},
  };
  for (const auto& [plain, encoded] : table) {
    CAPTURE(plain);
    CHECK(EncodeBase64(Bytes(plain)) == encoded);
    CHECK((DecodeBase64(encoded) == Bytes(plain)));
  }
}

TEST_CASE("what is not base64 is refused") {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg=a", "=g==", "Z===", "Zm9v Zg==", "Zh==", "Zm9=", "Zg==Zg==", "Z-_v"}) {
    CAPTURE(text);
    CHECK_FALSE(DecodeBase64(text).has_value());
  }
}

}  // namespace
}  // namespace rewire::text
