// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/byte_reader.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>

using rewire::ByteReader;
using rewire::Span;

namespace {

constexpr std::array<std::byte, 8> kBytes = {std::byte{1}, std::byte{2}, std::byte{3},   std::byte{4},
                                             std::byte{5}, std::byte{6}, std::byte{'h'}, std::byte{'i'}};

}  // namespace

TEST_CASE("values are little-endian and read in order") {
  ByteReader reader{Span<const std::byte>(kBytes)};
  CHECK(reader.Read<std::uint16_t>() == 0x0201);
  CHECK(reader.Read<std::uint32_t>() == 0x06050403);
  CHECK(reader.position() == 6);
  CHECK(reader.ReadString(2) == "hi");
  CHECK(reader.remaining() == 0);
  CHECK(reader.ok());
}

TEST_CASE("a read past the end fails for good") {
  ByteReader reader{Span<const std::byte>(kBytes)};
  CHECK(reader.ReadBytes(5).size() == 5);
  CHECK(reader.Read<std::uint32_t>() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.remaining() == 0);
  // Three bytes are left, but nothing after a failure may be taken for good.
  CHECK(reader.Read<std::uint8_t>() == 0);
  CHECK(reader.ReadString(1).empty());
}

TEST_CASE("a length near the end of the number range does not wrap") {
  ByteReader reader{Span<const std::byte>(kBytes)};
  reader.Read<std::uint8_t>();
  CHECK(reader.ReadBytes(~std::uint64_t{0}).empty());
  CHECK_FALSE(reader.ok());
}

TEST_CASE("a count is accepted only when its elements fit into what remains") {
  const std::array<std::byte, 7> two = {std::byte{2}, {}, {}, {}, {}, {}, {}};
  ByteReader fits{Span<const std::byte>(two)};
  CHECK(fits.ReadCount<std::uint8_t>(3) == 2);
  CHECK(fits.ok());

  ByteReader too_many{Span<const std::byte>(two)};
  CHECK(too_many.ReadCount<std::uint8_t>(4) == 0);
  CHECK_FALSE(too_many.ok());
}

TEST_CASE("an empty input") {
  ByteReader reader{Span<const std::byte>()};
  CHECK(reader.ReadBytes(0).empty());
  CHECK(reader.ok());
  CHECK(reader.ReadCount<std::uint32_t>(4) == 0);
  CHECK_FALSE(reader.ok());
}
