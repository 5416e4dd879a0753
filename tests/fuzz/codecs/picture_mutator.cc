// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/codecs/picture_mutator.h"

#include <algorithm>
#include <numeric>

namespace rewire::test {
namespace {

using hostile::Dice;

// A file as its parts: chunks, segments, boxes, entries. What lies between them is a part, too.
using Parts = std::vector<Bytes>;

std::uint64_t NumberAt(const Bytes& file, std::size_t at, int bytes, bool is_big) {
  std::uint64_t number = 0;
  for (int i = 0; i < bytes; ++i) {
    const std::size_t place = at + static_cast<std::size_t>(is_big ? i : bytes - 1 - i);
    number = number << 8 | (place < file.size() ? file[place] : 0U);
  }
  return number;
}

void PutNumberAt(Bytes* file, std::size_t at, std::uint64_t number, int bytes, bool is_big) {
  for (int i = 0; i < bytes; ++i) {
    const std::size_t place = at + static_cast<std::size_t>(is_big ? bytes - 1 - i : i);
    if (place < file->size()) (*file)[place] = static_cast<std::uint8_t>(number >> (8 * i));
  }
}

// The end of the part that begins at `at`.
using EndOfPart = std::size_t (*)(const Bytes& file, std::size_t at);

std::size_t EndOfPngChunk(const Bytes& file, std::size_t at) {
  return at == 0 ? 8 : at + 12 + NumberAt(file, at, 4, true);
}
std::size_t EndOfRiffChunk(const Bytes& file, std::size_t at) {
  if (at == 0) return 12;
  // The chunks of a frame are parts of their own.
  if (file[at] == 'A' && NumberAt(file, at, 4, true) == 0x414E4D46) return at + 24;
  const std::uint64_t length = NumberAt(file, at + 4, 4, false);
  return at + 8 + length + length % 2;
}
// Marker segments of JPEG, and of JPEG 2000, whose boxes come first. Data goes up to the next marker.
std::size_t EndOfSegment(const Bytes& file, std::size_t at) {
  if (file[0] == 0 && at + 8 <= file.size() && file[at] != 0xFF) {
    const std::uint64_t name = NumberAt(file, at + 4, 4, true);
    if (name == 0x6A703268 || name == 0x6A703263) return at + 8;
    return at + std::max<std::uint64_t>(8, NumberAt(file, at, 4, true));
  }
  const std::uint64_t marker = NumberAt(file, at, 2, true);
  const bool has_length =
      marker >= 0xFF01 && marker != 0xFF4F && marker != 0xFF93 && (marker < 0xFFD0 || marker > 0xFFD9);
  if (has_length && marker != 0xFFDA) return at + 2 + NumberAt(file, at + 2, 2, true);
  for (std::size_t end = at + 2; end + 1 < file.size(); ++end) {
    if (file[end] == 0xFF && file[end + 1] > 0x4F && (file[end + 1] < 0xD0 || file[end + 1] > 0xD7))
      return end;
  }
  return file.size();
}
// The head, the values and packed data, and each entry of the directory.
std::size_t EndOfTiffPart(const Bytes& file, std::size_t at) {
  const bool is_big_endian = file[0] == 'M', is_large = NumberAt(file, 2, 2, is_big_endian) == 43;
  const std::size_t head = is_large ? 16 : 8, of_entry = is_large ? 20 : 12, of_count = is_large ? 8 : 2;
  const std::uint64_t place = NumberAt(file, is_large ? 8 : 4, is_large ? 8 : 4, is_big_endian);
  if (at < head) return head;
  if (at < place) return static_cast<std::size_t>(place);
  if (at == place) return at + of_count;
  const std::uint64_t count =
      NumberAt(file, static_cast<std::size_t>(place), static_cast<int>(of_count), is_big_endian);
  return at < place + of_count + std::min<std::uint64_t>(count, file.size()) * of_entry ? at + of_entry
                                                                                        : file.size();
}
std::size_t EndOfBmpPart(const Bytes& file, std::size_t at) {
  return at == 0 ? 14 : at == 14 ? 54 : at == 54 && file[10] > 54 ? file[10] : file.size();
}
std::size_t EndOfWord(const Bytes& file, std::size_t at) {
  std::size_t end = at + 1;
  while (end < file.size() && end < at + 16 && file[end] > ' ') ++end;
  return at > 64 ? file.size() : end;
}

EndOfPart EndOf(std::string_view format) {
  if (format == "png") return EndOfPngChunk;
  if (format == "webp") return EndOfRiffChunk;
  if (format == "jpeg" || format == "jpeg2000") return EndOfSegment;
  if (format == "tiff") return EndOfTiffPart;
  if (format == "bmp") return EndOfBmpPart;
  return EndOfWord;
}

Parts Split(std::string_view format, const Bytes& file) {
  Parts parts;
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t end = std::min(file.size(), std::max(at + 1, EndOf(format)(file, at)));
    parts.emplace_back(file.begin() + static_cast<std::ptrdiff_t>(at),
                       file.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  return parts;
}

std::uint32_t Checksum(const std::uint8_t* begin, std::size_t size) {
  static const auto* table = [] {
    auto* made = new std::uint32_t[256];
    for (std::uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = made[i] & 1U ? 0xEDB88320U ^ made[i] >> 1 : made[i] >> 1;
    }
    return made;
  }();
  std::uint32_t sum = 0xFFFFFFFFU;
  for (std::size_t i = 0; i < size; ++i) sum = table[(sum ^ begin[i]) & 255U] ^ sum >> 8;
  return ~sum;
}

// Makes right again, most times, what a reader checks before it reads on.
void Repair(std::string_view format, Bytes* part) {
  if (format != "png" || part->size() < 12 || (*part)[0] == 0x89) return;
  PutNumberAt(part, part->size() - 4, Checksum(part->data() + 4, part->size() - 8), 4, true);
}

// A number of 1 to 4 bytes becomes another one that readers get wrong.
void ChangeNumber(Bytes* part, Dice& dice) {
  if (part->empty()) return;
  // The first numbers of a part are lengths, counts and sizes.
  const std::size_t most = dice.OneIn(2) ? std::min<std::size_t>(part->size(), 24) : part->size();
  const std::size_t at = dice.Below(most);
  const int bytes = 1 << dice.Below(3);
  const bool is_big = dice.OneIn(2);
  const auto number = static_cast<std::int64_t>(NumberAt(*part, at, bytes, is_big));
  const std::int64_t changed = dice.OneIn(2)
                                   ? dice.Interesting()
                                   : hostile::Plus(number, static_cast<std::int64_t>(dice.Below(9)) - 4);
  PutNumberAt(part, at, static_cast<std::uint64_t>(changed), bytes, is_big);
}

void ChangeBytes(Bytes* part, Dice& dice) {
  const std::size_t count = 1 + dice.Below(4);
  for (std::size_t i = 0; i < count && !part->empty(); ++i) {
    std::uint8_t& byte = (*part)[dice.Below(part->size())];
    byte = static_cast<std::uint8_t>(dice.OneIn(2) ? byte ^ 1U << dice.Below(8) : dice.Next());
  }
}

// Bytes go, come twice, or come from another part.
void ChangeLength(Bytes* part, const Bytes& from, Dice& dice) {
  const auto place = [&](const Bytes& bytes) {
    return static_cast<std::ptrdiff_t>(dice.Below(bytes.size() + 1));
  };
  std::ptrdiff_t begin = place(*part), end = place(*part);
  if (begin > end) std::swap(begin, end);
  if (dice.OneIn(2)) {
    part->erase(part->begin() + begin, part->begin() + end);
  } else {
    const Bytes source = dice.OneIn(2) ? Bytes(part->begin() + begin, part->begin() + end) : from;
    part->insert(part->begin() + place(*part), source.begin(), source.end());
  }
}

// The part within one that readers do not know, and step over.
Bytes Hide(std::string_view format, const Bytes& part, Dice& dice) {
  Bytes hidden;
  if (format == "jpeg" || format == "jpeg2000") {
    hidden = {0xFF, static_cast<std::uint8_t>(dice.OneIn(2) ? 0x70 : dice.Below(255))};
    hidden.resize(4);
    PutNumberAt(&hidden, 2, part.size() + 2, 2, true);
  } else if (format == "png") {
    hidden.resize(8, 'z');
    PutNumberAt(&hidden, 0, part.size(), 4, true);
  } else if (format == "webp") {
    hidden.resize(8, 'z');
    PutNumberAt(&hidden, 4, part.size(), 4, false);
  }
  hidden.insert(hidden.end(), part.begin(), part.end());
  if (format == "png") hidden.resize(hidden.size() + 4);
  return hidden;
}

void ChangeParts(std::string_view format, Parts* parts, const Parts& others, Dice& dice) {
  const auto place = [&] {
    return parts->begin() + static_cast<std::ptrdiff_t>(1 + dice.Below(parts->size()));
  };
  const std::size_t one = dice.Below(parts->size()), two = dice.Below(parts->size());
  const Bytes part = (*parts)[one], other = dice.Pick(others);
  switch (dice.Below(6)) {
    case 0:
      if (one > 0) parts->erase(parts->begin() + static_cast<std::ptrdiff_t>(one));
      break;
    case 1: {
      // Once more, or so often that the sum is what counts.
      const std::size_t most = std::max<std::size_t>(1, 20000 / std::max<std::size_t>(1, part.size()));
      parts->insert(place(), dice.OneIn(8) ? std::min<std::size_t>(2000, 1 + dice.Below(most)) : 1, part);
      break;
    }
    case 2:
      std::swap((*parts)[std::max<std::size_t>(1, one) % parts->size()],
                (*parts)[std::max<std::size_t>(1, two) % parts->size()]);
      break;
    case 3:
      parts->insert(place(), other);
      break;
    case 4:
      if (one > 0) (*parts)[one] = other;
      break;
    default:
      parts->insert(place(), Hide(format, dice.OneIn(2) ? part : other, dice));
      break;
  }
}

}  // namespace

Bytes Mutate(std::string_view format, const Bytes& file, const Bytes& other, Dice& dice) {
  Parts parts = Split(format, file);
  const Parts others = Split(format, other);
  const std::size_t changes = 1 + dice.Below(3);
  for (std::size_t i = 0; i < changes; ++i) {
    Bytes& part = dice.Pick(parts);
    const std::uint64_t kind = dice.Below(8);
    if (kind < 3) {
      ChangeNumber(&part, dice);
    } else if (kind < 5) {
      ChangeBytes(&part, dice);
    } else if (kind == 5) {
      ChangeLength(&part, dice.Pick(others), dice);
    } else {
      ChangeParts(format, &parts, others, dice);
      continue;
    }
    if (!dice.OneIn(16)) Repair(format, &part);
  }
  Bytes mutant;
  for (const Bytes& part : parts) mutant.insert(mutant.end(), part.begin(), part.end());
  if (dice.OneIn(20)) mutant.resize(dice.Below(mutant.size() + 1));
  constexpr std::size_t kSignature = 12;
  const std::size_t kept = format == "webp"  ? kSignature
                           : format == "png" ? 8
                           : format == "jpeg2000" && file[0] == 0
                               ? 12
                               : std::min<std::size_t>(format == "jpeg2000" || format == "tiff" ? 4
                                                       : format == "jpeg"                       ? 3
                                                                                                : 2,
                                                       file.size());
  mutant.resize(std::max(mutant.size(), kept));
  std::copy_n(file.begin(), kept, mutant.begin());
  if (format == "webp") PutNumberAt(&mutant, 4, mutant.size() - 8, 4, false);
  return mutant;
}

}  // namespace rewire::test
