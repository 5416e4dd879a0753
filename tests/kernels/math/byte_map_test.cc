// SPDX-License-Identifier: Apache-2.0
// Bytes looked up in a table of 256, by every instruction set.
#include "rewire/kernels/cpu/math/byte_map.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ChooseMapBytes;

TEST_CASE("bytes are looked up in a table, by every instruction set") {
  std::vector<std::uint8_t> table(256);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint8_t>(i * 167 + 13);
  ForEachTarget([&] {
    for (std::size_t count : {0, 1, 15, 16, 63, 64, 65, 300, 1000}) {
      INFO(count << " elements");
      std::vector<std::uint8_t> bytes(count), found(count + 1, 99), expected;
      for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
      ChooseMapBytes()(bytes.data(), static_cast<std::int64_t>(count), table.data(), found.data());
      for (const std::uint8_t byte : bytes) expected.push_back(table[byte]);
      expected.push_back(99);
      REQUIRE(found == expected);
    }
  });
}

TEST_CASE("map_bytes counts bytes without a sign, and refuses what does not fit") {
  HostTensor table = HostTensor::Empty<std::int8_t>({256});
  for (int i = 0; i < 256; ++i) table.elements<std::int8_t>()[i] = static_cast<std::int8_t>(i / 2 - 100);
  HostTensor x = HostTensor::Of<std::int8_t>({2, 2}, {0, 127, -128, -1});
  HostTensor out = HostTensor::Empty<std::int8_t>({2, 2});
  REQUIRE(Run("rewire.map_bytes", {&x, &table, &out}) == "");
  CHECK(out.values<std::int8_t>() == std::vector<std::int8_t>{-100, -37, -36, 27});
  HostTensor shorter = HostTensor::Empty<std::int8_t>({255});
  CHECK(Run("rewire.map_bytes", {&x, &shorter, &out}) ==
        "ValueError: rewire.map_bytes: table has shape [255], expected [256]");
  HostTensor other = HostTensor::Empty<std::uint8_t>({2, 2});
  CHECK(Run("rewire.map_bytes", {&x, &table, &other}) != "");
  HostTensor floats = HostTensor::Empty<float>({2, 2});
  CHECK(Run("rewire.map_bytes", {&floats, &table, &out}) != "");
  CHECK(Run("rewire.map_bytes", {&x, &table, &x}) != "");
}

}  // namespace
}  // namespace rewire::test
