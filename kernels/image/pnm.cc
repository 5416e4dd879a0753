// SPDX-License-Identifier: Apache-2.0
// Portable bitmaps, graymaps and pixmaps: P1 to P3 are text, P4 to P6 bytes.
#include <algorithm>
#include <limits>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

constexpr std::int64_t kMostValue = 65535;

bool IsSpace(std::uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// The text of a file. Comments go from # to the end of the line.
class Words {
 public:
  Words(File file, Canvas& canvas) : file_(file), canvas_(canvas) {}

  std::size_t at() const { return at_; }
  std::int64_t left() const { return static_cast<std::int64_t>(file_.size - at_); }
  void Skip(std::size_t bytes) { at_ += std::min(bytes, file_.size - at_); }

  // The next number up to `most`. kDamaged if something else follows.
  Outcome Number(std::int64_t most, std::int64_t* number) {
    if (const Outcome skipped = SkipSpaces(); skipped != Outcome::kDone) return skipped;
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < file_.size && IsDigit(); ++at_) {
      value = 10 * value + (file_.data[at_] - '0');
      if (value > most) return Outcome::kDamaged;
    }
    *number = value;
    const bool ends = at_ == file_.size || IsSpace(file_.data[at_]) || file_.data[at_] == '#';
    return at_ > begin && ends ? Outcome::kDone : Outcome::kDamaged;
  }
  // The next digit, 0 or 1, which need not stand alone.
  Outcome Bit(std::int64_t* bit) {
    if (const Outcome skipped = SkipSpaces(); skipped != Outcome::kDone) return skipped;
    if (at_ == file_.size || (file_.data[at_] != '0' && file_.data[at_] != '1')) return Outcome::kDamaged;
    *bit = file_.data[at_++] - '0';
    return Outcome::kDone;
  }

 private:
  bool IsDigit() const { return file_.data[at_] >= '0' && file_.data[at_] <= '9'; }
  Outcome SkipSpaces() {
    for (bool in_comment = false; at_ < file_.size; ++at_) {
      const std::uint8_t byte = file_.data[at_];
      if (!canvas_.Spend(2)) return Outcome::kFailed;
      if (in_comment) {
        in_comment = byte != '\n' && byte != '\r';
      } else if (byte == '#') {
        in_comment = true;
      } else if (!IsSpace(byte)) {
        break;
      }
    }
    return Outcome::kDone;
  }

  File file_;
  Canvas& canvas_;
  std::size_t at_ = 0;
};

struct Portable {
  bool is_text = false;
  bool is_bits = false;
  int channels = 1;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t most = 1;  // white

  int value_bytes() const { return most > 255 ? 2 : 1; }
  std::int64_t values() const { return cpu::Times(width, channels); }
  std::int64_t row_bytes() const { return is_bits ? (width + 7) / 8 : cpu::Times(values(), value_bytes()); }
  // The least that a file must have. Numbers have a space between them.
  std::int64_t least_bytes() const {
    if (!is_text) return cpu::Times(row_bytes(), height);
    const std::int64_t count = cpu::Times(values(), height);
    return is_bits ? count : cpu::Times(2, count) - 1;
  }
};

// `value` of `most` as a byte; halves go to the even neighbor.
std::uint8_t ByteOf(std::int64_t value, std::int64_t most) {
  const std::int64_t scaled = 255 * std::min(value, most);
  const std::int64_t whole = scaled / most, twice = 2 * (scaled % most);
  return static_cast<std::uint8_t>(whole + (twice > most || (twice == most && whole % 2 != 0) ? 1 : 0));
}

// Bytes of the values [begin, end) of a row that lies in the file.
void UnpackValues(const Portable& picture, const std::uint8_t* row, std::int64_t begin, std::int64_t end,
                  std::uint8_t* out) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (picture.is_bits) {
      out[i] = (row[i / 8] >> (7 - i % 8) & 1) != 0 ? 0 : 255;
    } else {
      const std::int64_t value = picture.value_bytes() == 1 ? row[i] : row[2 * i] * 256 + row[2 * i + 1];
      out[i] = ByteOf(value, picture.most);
    }
  }
}

Outcome ReadTextRow(const Portable& picture, Words& words, std::uint8_t* out) {
  for (std::int64_t i = 0; i < picture.values(); ++i) {
    std::int64_t value = 0;
    const Outcome read = picture.is_bits ? words.Bit(&value) : words.Number(picture.most, &value);
    if (read != Outcome::kDone) return read;
    out[i] = picture.is_bits ? static_cast<std::uint8_t>(value != 0 ? 0 : 255) : ByteOf(value, picture.most);
  }
  return Outcome::kDone;
}

}  // namespace

Outcome DecodePnm(File file, Canvas& canvas) {
  const int kind = file.data[1] - '0';
  Portable picture;
  picture.is_text = kind <= 3;
  picture.is_bits = kind % 3 == 1;
  picture.channels = kind % 3 == 0 ? 3 : 1;
  Words words(file, canvas);
  words.Skip(2);
  if (words.left() == 0 || (!IsSpace(file.data[2]) && file.data[2] != '#')) return Outcome::kDamaged;
  constexpr std::int64_t kMostSide = std::numeric_limits<std::int32_t>::max();
  Outcome read = words.Number(kMostSide, &picture.width);
  if (read == Outcome::kDone) read = words.Number(kMostSide, &picture.height);
  if (read == Outcome::kDone && !picture.is_bits) read = words.Number(kMostValue, &picture.most);
  if (read != Outcome::kDone) return read;
  // One space is left before the first value.
  words.Skip(1);
  if (picture.most == 0 || picture.width == 0 || picture.height == 0) return Outcome::kDamaged;
  if (picture.least_bytes() > words.left()) return Outcome::kDamaged;
  if (const Outcome opened = canvas.Open(picture.width, picture.height); opened != Outcome::kDone)
    return opened;
  std::uint8_t* row = canvas.Scratch(picture.values());
  if (row == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < picture.height; ++y) {
    if (picture.is_text) {
      if (const Outcome done = ReadTextRow(picture, words, row); done != Outcome::kDone) return done;
    } else {
      const std::uint8_t* from = file.data + words.at() + y * picture.row_bytes();
      const bool unpacked = canvas.For(picture.values(), 4, [&](std::int64_t begin, std::int64_t end) {
        UnpackValues(picture, from, begin, end, row);
      });
      if (!unpacked) return Outcome::kFailed;
    }
    if (!canvas.Put(y, row, picture.channels)) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

}  // namespace rewire::kernel::image
