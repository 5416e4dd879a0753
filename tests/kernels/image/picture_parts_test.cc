// SPDX-License-Identifier: Apache-2.0
// Files whose parts say something else to a codec than to a reader of lengths. What is not known is dropped
// or refused, so it costs no memory and changes no pixel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string_view>

#include "rewire/tests/kernels/image/decode_picture.h"
#include "rewire/tests/kernels/image/encoded_pictures.h"

namespace rewire::test {
namespace {

Bytes FileOf(std::string_view name) {
  const auto* found = std::find_if(std::begin(kPictures), std::end(kPictures), [&](const EncodedPicture& p) {
    return std::string_view(p.name).substr(0, name.size()) == name;
  });
  REQUIRE(found != std::end(kPictures));
  return BytesOfDigits(found->file);
}

void Insert(Bytes* file, std::size_t at, const Bytes& bytes) {
  file->insert(file->begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
}

void PutNumber(Bytes* file, std::uint64_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) file->push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

std::size_t FindMarker(const Bytes& file, std::uint8_t marker) {
  const Bytes wanted = {0xFF, marker};
  const auto found = std::search(file.begin(), file.end(), wanted.begin(), wanted.end());
  REQUIRE(found != file.end());
  return static_cast<std::size_t>(found - file.begin());
}

// Settings with parts of 2 x 2, each of which costs OpenJPEG some hundred bytes.
const Bytes kSmallParts = {0xFF, 0x52, 0, 14, 1, 0, 0, 1, 0, 1, 4, 4, 0, 1, 0x11, 0x11};

// A reader of lengths steps over what it does not know. OpenJPEG searches in it for markers that it knows.
TEST_CASE("image: JPEG 2000 of unknown markers has no rows or the pixels that it has without them") {
  VirtualMachine vm(DecoderOf("RGB"));
  const Bytes file = FileOf("Jpeg2000Code");
  const Decoded expected = Decode(vm, file);
  const std::size_t tile = FindMarker(file, 0x90), data = FindMarker(file, 0x93);
  const std::size_t length_at = tile + 9;
  int dropped = 0;
  for (int marker = 0x00; marker < 0xFF; ++marker) {
    Bytes segment = {0xFF, static_cast<std::uint8_t>(marker)};
    PutNumber(&segment, 2 + kSmallParts.size(), 2);
    segment.insert(segment.end(), kSmallParts.begin(), kSmallParts.end());
    CAPTURE(marker);
    Bytes in_main = file, in_tile = file;
    Insert(&in_main, tile, segment);
    Insert(&in_tile, data, segment);
    in_tile[length_at] = static_cast<std::uint8_t>(in_tile[length_at] + segment.size());
    for (const Bytes& changed : {in_main, in_tile}) {
      const Decoded decoded = Decode(vm, changed);
      if (decoded.shape[0] == 0) continue;
      ++dropped;
      CHECK(decoded.shape == expected.shape);
      CHECK(decoded.pixels == expected.pixels);
    }
  }
  // Comments, places and lengths of parts.
  CHECK(dropped == 2 * 5);
}

TEST_CASE("image: the parts of a JPEG 2000 tile lie within the file and in order") {
  VirtualMachine vm(DecoderOf("RGB"));
  const Bytes file = FileOf("Jpeg2000Code");
  const std::size_t tile = FindMarker(file, 0x90);
  // The number of the tile, its length, and its number among the parts.
  for (const std::size_t at : {tile + 5, tile + 6, tile + 9, tile + 10}) {
    Bytes changed = file;
    changed[at] = static_cast<std::uint8_t>(changed[at] + 1);
    CHECK(Decode(vm, changed).shape[0] == 0);
  }
  // A second tile of the same number.
  Bytes twice = file;
  Insert(&twice, file.size() - 2, Bytes(file.begin() + static_cast<std::ptrdiff_t>(tile), file.end() - 2));
  CHECK(Decode(vm, twice).shape[0] == 0);
  // Two parts of the first of two tiles, and none of the second.
  constexpr std::size_t kTileWidth = 27;
  twice[kTileWidth] = 3;
  twice[file.size() - 2 + 10] = 1;
  CHECK(Decode(vm, twice).shape[0] == 0);
}

// A directory of little-endian numbers.
struct Entry {
  std::uint16_t tag, type;
  std::uint32_t count, value;
};

Bytes TiffOf(const std::vector<Entry>& entries, std::size_t unused_bytes) {
  Bytes file = {'I', 'I', 42, 0};
  const auto put = [&](std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  };
  put(16 + unused_bytes, 4);
  for (int i = 0; i < 8; ++i) put(0x7F, 1);
  file.resize(16 + unused_bytes, 0x80);
  put(entries.size(), 2);
  for (const Entry& entry : entries) {
    put(entry.tag, 2);
    put(entry.type, 2);
    put(entry.count, 4);
    put(entry.value, 4);
  }
  put(0, 4);
  return file;
}

// One gray pixel.
std::vector<Entry> OnePixel() {
  return {{256, 3, 1, 1}, {257, 3, 1, 1}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 1},
          {273, 4, 1, 8}, {277, 3, 1, 1}, {278, 3, 1, 1}, {279, 4, 1, 1}};
}

TEST_CASE("image: tags of TIFF that are not known cost nothing") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(DecoderOf("RGB"), limits);
  constexpr std::uint32_t kBytes = 100000;
  std::vector<Entry> entries = OnePixel();
  for (std::uint16_t i = 0; i < 4000; ++i)
    entries.push_back({static_cast<std::uint16_t>(40000 + i), 1, kBytes, 16});
  CHECK(Decode(vm, TiffOf(entries, kBytes)).pixels == Bytes{0x7F, 0x7F, 0x7F});
}

TEST_CASE("image: each entry of a TIFF fits the picture and the file") {
  VirtualMachine vm(DecoderOf("RGB"));
  constexpr std::uint32_t kBytes = 100000;
  REQUIRE(Decode(vm, TiffOf(OnePixel(), kBytes)).shape[0] == 1);
  for (std::size_t i = 0; i < OnePixel().size(); ++i) {
    const auto decode = [&](std::uint32_t count, std::uint32_t value) {
      std::vector<Entry> entries = OnePixel();
      entries[i].count = count;
      entries[i].value = value;
      return Decode(vm, TiffOf(entries, kBytes)).shape[0];
    };
    CAPTURE(OnePixel()[i].tag);
    CHECK(decode(kBytes / 4, 16) == 0);
    CHECK(decode(0xFFFFFFFF, 16) == 0);
    CHECK(decode(0, OnePixel()[i].value) == 0);
  }
  // Places and sizes of strips that leave the file.
  std::vector<Entry> entries = OnePixel();
  entries[5].value = 16 + kBytes + 2 + 9 * 12 + 4;
  CHECK(Decode(vm, TiffOf(entries, kBytes)).shape[0] == 0);
  entries = OnePixel();
  entries[8].value = 0xFFFFFFFF;
  CHECK(Decode(vm, TiffOf(entries, kBytes)).shape[0] == 0);
}

// Some codecs within a TIFF take an amount of memory that is not known beforehand.
TEST_CASE("image: TIFF of codecs with unknown memory has no rows") {
  VirtualMachine vm(DecoderOf("RGB"));
  for (std::uint32_t codec = 0; codec <= 0xFFFF; ++codec) {
    std::vector<Entry> entries = OnePixel();
    entries[3].value = codec;
    const bool is_plain = codec == 1;
    const bool may_decode = is_plain || (codec >= 2 && codec <= 4) || codec == 5 || codec == 7 ||
                            codec == 8 || codec == 32946 || codec == 32773 || codec == 50000;
    if (may_decode && !is_plain) continue;
    const std::int64_t rows = Decode(vm, TiffOf(entries, 0)).shape[0];
    if (rows != (is_plain ? 1 : 0)) FAIL("codec " << codec << " gives " << rows << " rows");
  }
  // A sound picture of one of them: NeXT's codec stores a row of four pixels as 0 and their byte.
  constexpr std::uint32_t kNext = 32766;
  std::vector<Entry> entries = OnePixel();
  entries[0].value = 4;
  entries[2].value = 2;
  for (const std::uint32_t codec : {1U, kNext}) {
    entries[3].value = codec;
    entries[8].value = codec == kNext ? 2 : 1;
    Bytes file = TiffOf(entries, 0);
    file[8] = 0;
    CHECK(Decode(vm, file).shape[0] == (codec == kNext ? 0 : 1));
  }
}

// libwebp looks for the picture by itself, too; here it gets that chunk alone.
TEST_CASE("image: chunks of WebP that are not its picture change nothing") {
  VirtualMachine vm(DecoderOf("RGB"));
  for (const std::string_view name : {"Webp:", "LossyWebp"}) {
    const Bytes file = FileOf(name);
    const Decoded expected = Decode(vm, file);
    Bytes described = file, opaque = file, again = file;
    const Bytes chunk(file.begin() + 12, file.end());
    const auto with_size = [](Bytes changed) {
      for (std::size_t i = 0; i < 4; ++i)
        changed[4 + i] = static_cast<std::uint8_t>((changed.size() - 8) >> (8 * i));
      return changed;
    };
    // A description, opacity that is damaged, an unknown chunk, and a second picture.
    const Bytes description = {'V', 'P', '8', 'X', 10, 0, 0, 0, 0x10, 0, 0, 0, 5, 0, 0, 4, 0, 0};
    const Bytes opacity = {'A', 'L', 'P', 'H', 2, 0, 0, 0, 0xFF, 0xFF},
                unknown = {'z', 'z', 'z', 'z', 1, 0, 0, 0, 1, 0};
    Insert(&described, 12, unknown);
    Insert(&described, 12, opacity);
    Insert(&described, 12, description);
    CHECK(Decode(vm, with_size(described)).pixels == expected.pixels);
    Insert(&again, file.size(), chunk);
    CHECK(Decode(vm, with_size(again)).pixels == expected.pixels);
    // A description of another size.
    described[12 + 8 + 4] = 6;
    CHECK(Decode(vm, with_size(described)).shape[0] == 0);
    Insert(&opaque, 12, opacity);
    CHECK(Decode(vm, with_size(opaque)).shape == expected.shape);
  }
}

}  // namespace
}  // namespace rewire::test
