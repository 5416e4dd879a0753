// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/protobuf_wire.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rewire::serve {
namespace {

using Bytes = std::string;

TEST_CASE("fields are read as they were written, whatever their numbers and sizes") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto field = static_cast<std::uint32_t>(1 + (random() >> 35) % ((1U << 29) - 1));
    const std::uint64_t number = random() >> random() % 64;
    const Bytes text(random() % 300, 'x');
    Bytes message;
    WireWriter(&message)
        .AlwaysNumber(field, number)
        .AlwaysText(field, text)
        .Packed(1, std::vector<std::uint64_t>{number, 5});
    WireReader reader(message);
    REQUIRE(reader.Next());
    CHECK(reader.Is(field, WireType::kVarint));
    CHECK(reader.number() == number);
    REQUIRE(reader.Next());
    CHECK(reader.Is(field, WireType::kBytes));
    CHECK(reader.bytes() == text);
    REQUIRE(reader.Next());
    std::string_view packed = reader.bytes();
    std::uint64_t first = 0, second = 0;
    CHECK(WireReader::TakeVarint(&packed, &first));
    CHECK(WireReader::TakeVarint(&packed, &second));
    CHECK((first == number && second == 5 && packed.empty()));
    CHECK_FALSE(reader.Next());
    CHECK_FALSE(reader.malformed());
  }
}

TEST_CASE("zeroes and empty texts are left out, but where they are asked for") {
  Bytes message;
  WireWriter(&message).Number(1, 0).Text(2, "").Packed(3, std::vector<int>());
  CHECK(message.empty());
  WireWriter(&message).AlwaysNumber(1, 0).AlwaysText(2, "");
  CHECK(message == Bytes("\x08\0\x12\0", 4));
}

TEST_CASE("malformed fields end the message") {
  const std::vector<Bytes> wrong = {
      "\x80",                                          // half a tag
      Bytes("\0", 1),                                  // field 0
      "\x0b",                                          // a group
      "\x0e",                                          // a type that is none
      "\x08",                                          // no number
      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",  // more than 64 bits
      "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
      "\x09"
      "1234567",  // 7 of 8 bytes
      "\x0d"
      "123",                                           // 3 of 4
      "\x0a\x02x",                                     // 1 of 2
      "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  // as many as there are numbers
      "\xf8\xff\xff\xff\x7f\x01",                      // a field above the largest
  };
  for (const Bytes& bytes : wrong) {
    WireReader reader(bytes);
    CHECK_FALSE(reader.Next());
    CHECK(reader.malformed());
    CHECK_FALSE(reader.Next());
  }
}

}  // namespace
}  // namespace rewire::serve
