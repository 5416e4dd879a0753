// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/jpeg2000_boxes.h"

#include "rewire/kernels/image/numbers.h"

namespace rewire::kernel::image {
namespace {

// The names of boxes, as big-endian numbers.
enum Box : std::uint32_t {
  kHeader = 0x6A703268,      // jp2h
  kCodestream = 0x6A703263,  // jp2c
  kColors = 0x636F6C72,      // colr
  kPalette = 0x70636C72,     // pclr
  kMapping = 0x636D6170,     // cmap
  kDefinition = 0x63646566,  // cdef
};

// In one place: no file has as many.
constexpr int kMostBoxes = 1024;

// The next box: its name and content. A length of 0 goes up to the end.
bool TakeBox(Numbers& numbers, std::uint32_t* name, File* content) {
  const std::size_t begin = numbers.at();
  std::uint64_t length = numbers.Take(4);
  *name = numbers.Take32(4);
  if (length == 1) length = numbers.Take(8);
  const std::size_t taken = numbers.at() - begin;
  if (length != 0 && length < taken) return false;
  *content = numbers.Part(length == 0 ? numbers.left() : length - taken);
  return !numbers.failed();
}

// Only the first description of the colors counts.
void ReadColorSpace(File content, Jpeg2000Boxes* boxes) {
  constexpr std::uint32_t kEnumerated = 1, kDifferences = 18;
  Numbers numbers(content);
  const std::uint32_t method = numbers.Take32(1);
  numbers.Skip(2);
  boxes->has_differences = method == kEnumerated && numbers.Take32(4) == kDifferences;
}

bool ReadPalette(File content, Jpeg2000Boxes* boxes) {
  constexpr std::uint32_t kMostEntries = 1024;
  Numbers numbers(content);
  boxes->entries = numbers.Take32(2);
  boxes->columns = numbers.Take32(1);
  if (boxes->entries == 0 || boxes->entries > kMostEntries || boxes->columns == 0 ||
      boxes->columns > Jpeg2000Boxes::kMostChannels)
    return false;
  std::uint64_t row = 0;
  for (std::uint32_t i = 0; i < boxes->columns; ++i) {
    const std::uint32_t depth = numbers.Take32(1);
    boxes->column[i] = {static_cast<int>(depth & 127U) + 1, depth >> 7 != 0};
    if (boxes->column[i].bits > 31) return false;
    row += static_cast<std::uint64_t>(boxes->column[i].bits + 7) / 8;
  }
  boxes->colors = numbers.Part(row * boxes->entries);
  return !numbers.failed();
}

bool ReadMapping(File content, Jpeg2000Boxes* boxes) {
  Numbers numbers(content);
  if (content.size % 4 != 0 || content.size / 4 > Jpeg2000Boxes::kMostChannels) return false;
  boxes->channels = static_cast<std::uint32_t>(content.size / 4);
  for (std::uint32_t i = 0; i < boxes->channels; ++i) {
    Jpeg2000Boxes::Source& source = boxes->source[i];
    source.component = numbers.Take32(2);
    const std::uint32_t kind = numbers.Take32(1);
    if (kind > 1) return false;
    source.by_palette = kind == 1;
    source.column = numbers.Take32(1);
  }
  return true;
}

// Channels that are colors, in their order; others are opacity or unknown.
bool ReadDefinition(File content, Jpeg2000Boxes* boxes) {
  Numbers numbers(content);
  const std::uint32_t count = numbers.Take32(2);
  for (std::uint32_t i = 0; i < count && !numbers.failed(); ++i) {
    const std::uint32_t channel = numbers.Take32(2), kind = numbers.Take32(2), color = numbers.Take32(2);
    if (kind == 0 && color >= 1 && color <= 3) boxes->color[color - 1] = channel;
  }
  return !numbers.failed();
}

bool ReadHeader(File header, Jpeg2000Boxes* boxes) {
  bool has_color = false, has_mapping = false;
  int count = 0;
  for (Numbers numbers(header); numbers.left() > 0;) {
    std::uint32_t name = 0;
    File content;
    if (++count > kMostBoxes || !TakeBox(numbers, &name, &content)) return false;
    bool is_read = true;
    if (name == kColors) {
      if (!has_color) ReadColorSpace(content, boxes);
      has_color = true;
    } else if (name == kPalette) {
      is_read = boxes->entries == 0 && ReadPalette(content, boxes);
    } else if (name == kMapping) {
      is_read = !has_mapping && ReadMapping(content, boxes);
      has_mapping = true;
    } else if (name == kDefinition) {
      is_read = ReadDefinition(content, boxes);
    }
    if (!is_read) return false;
  }
  // Neither means anything without the other.
  if (boxes->entries == 0 || boxes->channels == 0) boxes->channels = boxes->entries = 0;
  for (std::uint32_t i = 0; i < boxes->channels; ++i) {
    if (boxes->source[i].by_palette && boxes->source[i].column >= boxes->columns) return false;
  }
  return true;
}

}  // namespace

bool ReadBoxes(File file, Jpeg2000Boxes* boxes) {
  *boxes = {};
  if (file.size >= 2 && file.data[0] == 0xFF) {
    boxes->codestream = file;
    return true;
  }
  bool has_header = false;
  int count = 0;
  for (Numbers numbers(file); numbers.left() > 0;) {
    std::uint32_t name = 0;
    File content;
    if (++count > kMostBoxes || !TakeBox(numbers, &name, &content)) return false;
    if (name == kHeader) {
      if (has_header || !ReadHeader(content, boxes)) return false;
      has_header = true;
    } else if (name == kCodestream) {
      boxes->codestream = content;
      return has_header;
    }
  }
  return false;
}

}  // namespace rewire::kernel::image
