// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/compress_constant.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "rewire/base/hash.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

Constant Zeros(std::int64_t count) {
  Constant constant = test::DataConstant("zeros", TensorType(kFloat32, {count}),
                                         std::vector<float>(static_cast<std::size_t>(count)));
  constant.checksum = Hash64(constant.stored.view);
  return constant;
}

// The constant with `bytes` in place of its own and a checksum that fits.
Constant Stored(Constant constant, const std::vector<std::byte>& bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  constant.stored = {{owner->data(), owner->size()}, owner};
  constant.checksum = Hash64(constant.stored.view);
  return constant;
}

std::vector<std::byte> Copy(const Constant& constant) {
  return {constant.stored.view.begin(), constant.stored.view.end()};
}

Error DecodeError(const Constant& constant, const ConstantCodecs& codecs = {}) {
  std::vector<std::byte> raw(constant.raw_bytes);
  Status status = DecodeConstant(constant, codecs, raw);
  if (status) FAIL("the constant was decoded");
  return status.error();
}

TEST_CASE("an uncompressed constant is copied") {
  Constant constant = test::DataConstant("w", TensorType(kFloat32, {3}), {1, 2, 3});
  constant.checksum = Hash64(constant.stored.view);
  std::vector<std::byte> raw(12);
  REQUIRE(DecodeConstant(constant, {}, raw));
  CHECK(raw == Copy(constant));
}

TEST_CASE("a constant's damage is found when it is decoded") {
  Constant constant = Zeros(4);
  constant.checksum ^= 1;
  CHECK(DecodeError(constant).code() == StatusCode::kInvalidFile);
  CHECK(DecodeError(constant).message().find("constant 'zeros' is damaged: its bytes have checksum ") == 0);
  CHECK_FALSE(CheckConstantData(constant));
}

TEST_CASE("room of another size is refused") {
  std::vector<std::byte> raw(15);
  Status status = DecodeConstant(Zeros(4), {}, raw);
  REQUIRE_FALSE(status);
  CHECK(status.error().message() == "constant 'zeros' decodes to 16 bytes, there is room for 15");
}

TEST_CASE("a constant of fewer bytes than its type takes is damaged") {
  const std::vector<std::byte> bytes(12);
  CHECK(DecodeError(Stored(Zeros(4), bytes)).message() ==
        "constant 'zeros' is damaged: it has 12 bytes, its type takes 16");
}

#ifdef REWIRE_NO_ZSTD

TEST_CASE("without zstd its constants are refused by name") {
  Constant constant = Zeros(4);
  constant.codec = kCodecZstd;
  CHECK(DecodeError(constant).code() == StatusCode::kUnsupported);
  CHECK(DecodeError(constant).message() ==
        "constant 'zeros' needs zstd, which this library was built without (REWIRE_WITH_ZSTD)");
  CHECK(CompressConstant(&constant).error().code() == StatusCode::kUnsupported);
}

#else

TEST_CASE("a compressed constant comes back") {
  Constant constant = Zeros(1000);
  REQUIRE(CompressConstant(&constant));
  CHECK(constant.codec == kCodecZstd);
  CHECK(constant.stored.view.size() < 100);
  CHECK(constant.raw_bytes == 4000);
  constant.checksum = Hash64(constant.stored.view);
  std::vector<std::byte> raw(4000, std::byte{1});
  REQUIRE(DecodeConstant(constant, {}, raw));
  CHECK(raw == std::vector<std::byte>(4000));
}

TEST_CASE("what does not shrink stays as it is") {
  Constant constant = test::DataConstant("w", TensorType(kFloat32, {1}), {1.5F});
  REQUIRE(CompressConstant(&constant));
  CHECK(constant.codec == kCodecNone);
  CHECK(constant.stored.view.size() == 4);
}

TEST_CASE("a frame of another size or none at all is damage, and writes nothing past the end") {
  Constant constant = Zeros(1000);
  REQUIRE(CompressConstant(&constant));
  constant = Stored(constant, Copy(constant));

  Constant larger = constant;
  larger.raw_bytes = 8000;
  CHECK(DecodeError(larger).message() ==
        "constant 'zeros' is damaged: it decompresses to 4000 bytes, expected 8000");
  Constant smaller = constant;
  smaller.raw_bytes = 400;
  CHECK(DecodeError(smaller).message() == "constant 'zeros' is damaged: Destination buffer is too small");
  CHECK(DecodeError(Stored(constant, std::vector<std::byte>(20))).message() ==
        "constant 'zeros' is damaged: Unknown frame descriptor");
}

#endif

TEST_CASE("the host's codecs") {
  Constant constant = Zeros(4);
  constant.codec = kFirstHostCodec + 1;
  CHECK(DecodeError(constant).code() == StatusCode::kUnsupported);
  CHECK(DecodeError(constant).message() ==
        "constant 'zeros' is stored with codec 257, which the host has not registered");

  ConstantCodecs codecs;
  codecs.push_back(
      {kFirstHostCodec + 1, nullptr, [](void*, const void* stored, std::size_t, void* raw, std::size_t size) {
         if (*static_cast<const char*>(stored) != 0) return 3;
         std::memset(raw, 7, size);
         return 0;
       }});
  std::vector<std::byte> raw(16);
  REQUIRE(DecodeConstant(constant, codecs, raw));
  CHECK(raw[15] == std::byte{7});
  CHECK(DecodeError(Stored(constant, std::vector<std::byte>(1, std::byte{1})), codecs).message() ==
        "constant 'zeros' is damaged: codec 257 of the host's says 3");

  constant.codec = 5;
  CHECK(DecodeError(constant).message() ==
        "constant 'zeros' is stored with codec 5, which this library does not know: use a newer one");
}

}  // namespace
}  // namespace rewire
