// SPDX-License-Identifier: Apache-2.0
// The kernel of encoded pictures as programs use it, beside what Pillow reads.
#include "rewire/tests/kernels/image/encoded_pictures.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "rewire/tests/kernels/image/decode_picture.h"

namespace rewire::test {
namespace {

int Difference(const Bytes& given, const Bytes& expected) {
  REQUIRE(given.size() == expected.size());
  int most = 0;
  for (std::size_t i = 0; i < given.size(); ++i) most = std::max(most, std::abs(given[i] - expected[i]));
  return most;
}

TEST_CASE("image: pictures of every format have the pixels that Pillow reads") {
  VirtualMachine rgb(DecoderOf("RGB")), bgr(DecoderOf("BGR")), gray(DecoderOf("Grayscale"));
  for (const EncodedPicture& picture : kPictures) {
    CAPTURE(picture.name);
    const Bytes file = BytesOfDigits(picture.file);
    Bytes expected = BytesOfDigits(picture.rgb);
    const Decoded colors = Decode(rgb, file);
    CHECK(colors.shape == std::vector<std::int64_t>{picture.height, picture.width, 3});
    CHECK(Difference(colors.pixels, expected) == 0);
    for (std::size_t i = 0; i < expected.size(); i += 3) std::swap(expected[i], expected[i + 2]);
    CHECK(Difference(Decode(bgr, file).pixels, expected) == 0);
    const Decoded brightness = Decode(gray, file);
    CHECK(brightness.shape == std::vector<std::int64_t>{picture.height, picture.width, 1});
    CHECK(Difference(brightness.pixels, BytesOfDigits(picture.gray)) == 0);
  }
}

TEST_CASE("image: what is no picture gives one without rows") {
  VirtualMachine vm(DecoderOf("RGB")), gray(DecoderOf("Grayscale"));
  const std::vector<std::int64_t> nothing = {0, 0, 3};
  CHECK(Decode(vm, {}).shape == nothing);
  CHECK(Decode(vm, {'G', 'I', 'F', '8', '9', 'a'}).shape == nothing);
  CHECK(Decode(vm, {'P', '7', '\n'}).shape == nothing);
  CHECK(Decode(gray, {'B', 'M'}).shape == std::vector<std::int64_t>{0, 0, 1});
}

// None of them runs outside its memory, leaks or fails: the sanitizers see to that.
TEST_CASE("image: damaged pictures decode or have no rows") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(DecoderOf("RGB"), limits);
  const auto try_one = [&](const Bytes& file, bool must_fail) {
    const Result<Value> result = TryDecode(vm, file);
    if (!result) {
      // The damage may have made the picture larger than the limit.
      REQUIRE_THAT(MessageOf(result), Catch::Contains("MemoryError: "));
      return;
    }
    const Array<std::int64_t> shape = result->tensor().shape();
    if (must_fail) CHECK(shape[0] == 0);
  };
  for (const EncodedPicture& picture : kPictures) {
    CAPTURE(picture.name);
    const Bytes file = BytesOfDigits(picture.file);
    for (std::size_t size = 0; size < file.size(); ++size) {
      // Keeps the bytes in front of the pixels.
      try_one(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)), size < 12);
      for (const int value : {0, 255, file[size] ^ 1, file[size] ^ 128}) {
        Bytes changed = file;
        changed[size] = static_cast<std::uint8_t>(value);
        try_one(changed, false);
      }
    }
  }
}

TEST_CASE("image: files that lack their end have no rows") {
  VirtualMachine vm(DecoderOf("RGB"));
  for (const EncodedPicture& picture : kPictures) {
    CAPTURE(picture.name);
    Bytes file = BytesOfDigits(picture.file);
    file.resize(file.size() * 2 / 3);
    CHECK(Decode(vm, file).shape[0] == 0);
  }
}

// The size is all that is read: 60000 x 60000 pixels by a header of a few bytes.
TEST_CASE("image: a size over the limit ends the run before anything is decoded") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(DecoderOf("RGB"), limits);
  Bytes png = BytesOfDigits(kPictures[8].file);
  REQUIRE(png[1] == 'P');
  // Width and height, and the checksum over them and what follows, from zlib.
  const Bytes header = {0x00, 0x00, 0xEA, 0x60, 0x00, 0x00, 0xEA, 0x60};
  std::copy(header.begin(), header.end(), png.begin() + 16);
  const Bytes checksum = BytesOfDigits("0fb0e215");
  std::copy(checksum.begin(), checksum.end(), png.begin() + 29);
  const Result<Value> large = TryDecode(vm, png);
  CHECK_THAT(MessageOf(large), Catch::Contains("MemoryError: no memory for a new object"));
  CHECK(vm.bytes_peak() <= limits.bytes);
}

// The beginning of a JPEG 2000 of 256 x 256 pixels: its sizes, and how its parts are made.
Bytes CodestreamOf(std::uint32_t components, std::uint32_t tile, std::uint8_t part) {
  Bytes file = {0xFF, 0x4F, 0xFF, 0x51};
  const auto put = [&](std::uint32_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) file.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  };
  put(38 + 3 * components, 2);
  put(0, 2);
  for (const std::uint32_t side : {256U, 256U, 0U, 0U, tile, tile, 0U, 0U}) put(side, 4);
  put(components, 2);
  for (std::uint32_t i = 0; i < components; ++i) put(0x070101, 3);
  for (const std::uint8_t byte : {0xFF, 0x52, 0, 13, 1, 0, 0, 1, 0, 0, 4, 4, 0, 0}) file.push_back(byte);
  file.push_back(part);
  return file;
}

// A few bytes that would make OpenJPEG allocate without end.
TEST_CASE("image: what a JPEG 2000 is divided into is bounded") {
  Limits limits;
  limits.bytes = 64 << 20;
  VirtualMachine vm(DecoderOf("RGB"), limits);
  CHECK(Decode(vm, CodestreamOf(5, 256, 0x44)).shape[0] == 0);
  CHECK(Decode(vm, CodestreamOf(3, 256, 0x34)).shape[0] == 0);
  CHECK(vm.bytes_peak() < 1 << 20);
  // Tiles that the file does not have.
  CHECK(Decode(vm, CodestreamOf(3, 256, 0x44)).shape[0] == 0);
  CHECK(Decode(vm, CodestreamOf(3, 1, 0x44)).shape[0] == 0);
  CHECK(vm.bytes_peak() < 1 << 20);
}

TEST_CASE("image: a deadline that has passed ends the call") {
  VirtualMachine vm(DecoderOf("RGB"));
  // 4 MB of spaces before the size.
  Bytes text(std::size_t{4} << 20, ' ');
  text[0] = 'P';
  text[1] = '2';
  vm.SetDeadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(2));
  const Result<Value> stopped = TryDecode(vm, text);
  REQUIRE(!stopped);
  CHECK(stopped.error().code() == StatusCode::kDeadlineExceeded);
}

TEST_CASE("image: other formats of pixels, dtypes and ranks are refused") {
  CHECK_THAT(
      MessageOf(Program::Link(ExecutableOf(
          ".kernel decode = \"rewire.image.decode\" {pixel_format=\"RGBA\"}\n"
          ".func main(x: u8[?]) -> value\n  %y = invoke_packed decode(%x), outputs=0\n  ret %y\n.end\n"))),
      Catch::Contains("attribute 'pixel_format' is 'RGBA', expected one of 'RGB', 'BGR', 'Grayscale'"));
  VirtualMachine vm(
      Linked(".kernel decode = \"rewire.image.decode\"\n.func main(x: value) -> value\n"
             "  %y = invoke_packed decode(%x), outputs=0\n  ret %y\n.end\n"));
  const Value floats(Floats({1, 2}));
  CHECK_THAT(MessageOf(vm.TryInvoke("main", {&floats, 1})), Catch::Contains("x has dtype f32, expected u8"));
  Bytes bytes(4);
  const Value matrix(
      *Tensor::CopyOf(TensorView(bytes.data(), DTypeOf<std::uint8_t>(), Array<std::int64_t>{2, 2})));
  CHECK_THAT(MessageOf(vm.TryInvoke("main", {&matrix, 1})),
             Catch::Contains("x has shape [2, 2], expected rank 1"));
}

}  // namespace
}  // namespace rewire::test
