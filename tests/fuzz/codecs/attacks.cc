// SPDX-License-Identifier: Apache-2.0
// Small files that make codecs hold or do the most.
#include <algorithm>

#include "rewire/tests/fuzz/codecs/picture_mutator.h"

namespace rewire::test {
namespace {

void Put(Bytes* file, std::uint64_t number, int bytes, bool is_big = true) {
  for (int i = 0; i < bytes; ++i)
    file->push_back(static_cast<std::uint8_t>(number >> (8 * (is_big ? bytes - 1 - i : i))));
}

// A gray JPEG 2000 of side x side pixels which are all the same: its packets are empty.
Bytes EmptyJpeg2000(std::uint32_t side, std::uint32_t tile, const Bytes& before_tiles, int layers,
                    const Bytes& parts) {
  Bytes file;
  Put(&file, 0xFF4FFF51, 4);
  Put(&file, 41, 2);
  Put(&file, 0, 2);
  for (const std::uint32_t number : {side, side, 0U, 0U, tile, tile, 0U, 0U}) Put(&file, number, 4);
  Put(&file, 1, 2);
  Put(&file, 0x070101, 3);
  Put(&file, 0xFF52, 2);
  Put(&file, 12 + parts.size(), 2);
  Put(&file, parts.empty() ? 0 : 1, 1);
  Put(&file, 0, 1);
  Put(&file, static_cast<std::uint64_t>(layers), 2);
  Put(&file, 0, 1);
  Put(&file, 5, 1);
  Put(&file, 0x04040001, 4);
  file.insert(file.end(), parts.begin(), parts.end());
  Put(&file, 0xFF5C, 2);
  Put(&file, 19, 2);
  Put(&file, 0x40, 1);
  for (int i = 0; i < 16; ++i) Put(&file, 0x48, 1);
  file.insert(file.end(), before_tiles.begin(), before_tiles.end());
  const std::uint32_t across = (side + tile - 1) / tile;
  for (std::uint32_t i = 0; i < std::min(across * across, 60000U); ++i) {
    Put(&file, 0xFF90000A, 4);
    Put(&file, i, 2);
    Put(&file, 14 + 64, 4);
    Put(&file, 0x0001FF93, 4);
    file.resize(file.size() + 64);
  }
  Put(&file, 0xFFD9, 2);
  return file;
}

void AddJpeg2000(std::vector<PictureSeed>* attacks) {
  const Bytes hidden = {0xFF, 0x70, 0, 22, 0xFF, 0x52, 0,    18,   1,    0,    0,    1,
                        0,    5,    4, 4,  0,    1,    0x11, 0x11, 0x11, 0x11, 0x11, 0x11};
  attacks->push_back({"parts of 2 x 2 in an unknown marker", EmptyJpeg2000(1000, 1000, hidden, 1, {})});
  attacks->push_back({"65535 layers", EmptyJpeg2000(1000, 1000, {}, 65535, Bytes(6, 0x44))});
  attacks->push_back({"many layers and large parts", EmptyJpeg2000(1000, 1000, {}, 65535, {})});
  attacks->push_back({"one tile of 2000 x 2000", EmptyJpeg2000(2000, 2000, {}, 1, {})});
  attacks->push_back({"small parts", EmptyJpeg2000(2000, 2000, {}, 1, Bytes(6, 0x44))});
  attacks->push_back({"tiles of 8 x 8", EmptyJpeg2000(1600, 8, {}, 1, {})});
}

void AddTiff(std::vector<PictureSeed>* attacks) {
  struct Entry {
    std::uint16_t tag, type;
    std::uint32_t count, value;
  };
  const auto make = [](std::vector<Entry> entries, std::uint32_t bytes) {
    Bytes file = {'I', 'I', 42, 0};
    Put(&file, 16 + bytes, 4, false);
    file.resize(16 + bytes, 0x80);
    Put(&file, entries.size(), 2, false);
    for (const Entry& entry : entries) {
      Put(&file, entry.tag, 2, false);
      Put(&file, entry.type, 2, false);
      Put(&file, entry.count, 4, false);
      Put(&file, entry.value, 4, false);
    }
    Put(&file, 0, 4, false);
    return file;
  };
  const auto picture = [](std::uint32_t side, std::uint32_t codec, std::uint32_t size) {
    return std::vector<Entry>{{256, 4, 1, side},  {257, 4, 1, side}, {258, 3, 1, 8},
                              {259, 3, 1, codec}, {262, 3, 1, 1},    {273, 4, 1, 16},
                              {277, 3, 1, 1},     {278, 4, 1, side}, {279, 4, 1, size}};
  };
  std::vector<Entry> entries = picture(1, 1, 1);
  for (std::uint16_t i = 0; i < 4000; ++i)
    entries.push_back({static_cast<std::uint16_t>(40000 + i), 1, 200000, 16});
  attacks->push_back({"4000 unknown tags over the same bytes", make(entries, 200000)});
  entries = picture(1, 1, 1);
  for (std::uint16_t i = 0; i < 4000; ++i) entries.push_back({270, 2, 200000, 16});
  attacks->push_back({"4000 descriptions", make(entries, 200000)});
  for (const std::uint32_t codec : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 32773U, 50000U, 34925U, 50001U}) {
    attacks->push_back({"one strip of 2000 x 2000 by codec " + std::to_string(codec),
                        make(picture(2000, codec, 100000), 100000)});
  }
}

// Writes bits, the lowest first.
class Bits {
 public:
  void Put(std::uint32_t number, int bits) {
    for (int i = 0; i < bits; ++i, ++count_) {
      if (count_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | (number >> i & 1U) << (count_ % 8));
    }
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::size_t count_ = 0;
};

// A lossless WebP in which each block of 4 x 4 pixels has codes of its own.
void AddWebp(std::vector<PictureSeed>* attacks) {
  constexpr std::uint32_t kSide = 1024, kBlocks = kSide / 4;
  Bits bits;
  bits.Put(0x2F, 8);
  bits.Put(kSide - 1, 14);
  bits.Put(kSide - 1, 14);
  bits.Put(0, 1 + 3);
  bits.Put(0, 1);  // no transform
  bits.Put(0, 1);  // no cache of colors
  bits.Put(1, 1);  // several groups of codes
  bits.Put(0, 3);  // for blocks of 4 x 4
  bits.Put(0, 1);  // whose numbers have no cache
  // Green and red of the numbers: 256 symbols of 8 bits each. The lengths are written by a code of one
  // symbol.
  const auto put_eights = [&](int symbols) {
    bits.Put(0, 1);
    bits.Put(12 - 4, 4);
    // The lengths' own code, in the order 17 18 0 1 2 3 4 5 16 6 7 8: 0 and 8 have one bit each.
    for (const std::uint32_t length : {0U, 0U, 1U, 0U, 0U, 0U, 0U, 0U, 0U, 0U, 0U, 1U}) bits.Put(length, 3);
    bits.Put(0, 1);
    for (int i = 0; i < symbols; ++i) bits.Put(i < 256 ? 1 : 0, 1);
  };
  const auto put_simple = [&] { bits.Put(0b0001, 4); };  // one symbol, 0, of one bit
  put_eights(280);
  put_eights(256);
  for (int i = 0; i < 3; ++i) put_simple();
  const auto reversed = [](std::uint32_t byte) {
    std::uint32_t turned = 0;
    for (int i = 0; i < 8; ++i) turned |= (byte >> i & 1U) << (7 - i);
    return turned;
  };
  for (std::uint32_t i = 0; i < kBlocks * kBlocks; ++i) {
    bits.Put(reversed(i & 255U), 8);
    bits.Put(reversed(i >> 8), 8);
  }
  for (std::uint32_t i = 0; i < kBlocks * kBlocks; ++i) {
    for (int k = 0; k < 5; ++k) put_simple();
  }
  Bytes file = {'R', 'I', 'F', 'F'};
  Put(&file, bits.bytes().size() + 12, 4, false);
  for (const char letter : {'W', 'E', 'B', 'P', 'V', 'P', '8', 'L'})
    file.push_back(static_cast<std::uint8_t>(letter));
  Put(&file, bits.bytes().size(), 4, false);
  file.insert(file.end(), bits.bytes().begin(), bits.bytes().end());
  attacks->push_back({"65536 groups of codes", file});
}

}  // namespace

std::vector<PictureSeed> Attacks(std::string_view format) {
  std::vector<PictureSeed> attacks;
  if (format == "jpeg2000") AddJpeg2000(&attacks);
  if (format == "tiff") AddTiff(&attacks);
  if (format == "webp") AddWebp(&attacks);
  return attacks;
}

}  // namespace rewire::test
