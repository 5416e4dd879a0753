// SPDX-License-Identifier: Apache-2.0
// JPEG 2000 pictures whose last tiles are small, and whose samples stand for several pixels, beside what
// OpenJPEG makes of the whole picture at once.
#include <openjpeg.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rewire/tests/fuzz/codecs/jpeg2000_encoder.h"
#include "rewire/tests/fuzz/codecs/whole_decode.h"
#include "rewire/tests/hostile/dice.h"
#include "rewire/tests/kernels/image/decode_picture.h"

namespace rewire::test {
namespace {

struct Form {
  const char* name;
  std::vector<Jpeg2000Step> components;
  int mixes_colors = 0;
};

const std::vector<Form>& Forms() {
  static const std::vector<Form> forms = {
      {"gray", {{1, 1}}},
      {"mixed colors", {{1, 1}, {1, 1}, {1, 1}}, 1},
      {"colors of half the width", {{1, 1}, {2, 1}, {2, 1}}},
      {"colors of half the height", {{1, 1}, {1, 2}, {1, 2}}},
      {"colors of a quarter", {{1, 1}, {2, 2}, {2, 2}}},
      {"colors of unlike sizes", {{1, 1}, {2, 2}, {4, 1}}},
      {"colors of a sixteenth", {{1, 1}, {4, 4}, {4, 4}}},
      {"all of a quarter", {{2, 2}, {2, 2}, {2, 2}}, 1},
      {"mixed colors and opacity of a quarter", {{1, 1}, {1, 1}, {1, 1}, {2, 2}}, 1},
      {"a small color before a large one", {{1, 1}, {1, 1}, {4, 4}, {1, 1}}},
  };
  return forms;
}

struct Geometry {
  int left = 0, top = 0, width = 0, height = 0, tile_width = 0, tile_height = 0;
};

std::int64_t Up(std::int64_t pixel, OPJ_UINT32 step) { return (pixel + step - 1) / step; }

// Whether the first tile, and so each one, has a sample of each color at or before its first pixel.
bool HasFirstSamples(const Form& form, const Geometry& at) {
  const auto reaches = [](int begin, int size, int tile, OPJ_UINT32 step) {
    return Up(std::min((begin / tile + 1) * tile, begin + size), step) > Up(begin, step);
  };
  const std::size_t colors = form.components.size() >= 3 ? 3 : 1;
  return std::all_of(form.components.begin(), form.components.begin() + static_cast<std::ptrdiff_t>(colors),
                     [&](const Jpeg2000Step& step) {
                       return reaches(at.left, at.width, at.tile_width, step.across) &&
                              reaches(at.top, at.height, at.tile_height, step.down);
                     });
}

// The fewest samples along a side of any tile, of one component.
std::int64_t FewestSamples(const Jpeg2000Step& step, const Geometry& at) {
  const auto fewest = [](int begin, int size, int tile, OPJ_UINT32 pixels) {
    std::int64_t least = size;
    for (int from = begin; from < begin + size; from = (from / tile + 1) * tile)
      least =
          std::min(least, Up(std::min((from / tile + 1) * tile, begin + size), pixels) - Up(from, pixels));
    return least;
  };
  return std::min(fewest(at.left, at.width, at.tile_width, step.across),
                  fewest(at.top, at.height, at.tile_height, step.down));
}

struct Counts {
  int compared = 0, without_samples = 0;
};

// Encodes a picture of this form. Gives no bytes if OpenJPEG's encoder cannot.
Bytes Encode(const Form& form, const Geometry& at, bool has_boxes, hostile::Dice& dice) {
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.tcp_numlayers = 1;
  parameters.cp_disto_alloc = 1;
  parameters.irreversible = dice.OneIn(2) ? 1 : 0;
  parameters.tcp_mct = static_cast<char>(form.mixes_colors);
  std::int64_t fewest = at.width, most = 0;
  for (const Jpeg2000Step& step : form.components) {
    fewest = std::min(fewest, FewestSamples(step, at));
    most = std::max(most, FewestSamples(step, at));
  }
  // OpenJPEG's encoder ends the process if a tile has no samples at all, and reads past the ends of sides
  // with fewer samples than these.
  if (most == 0) return {};
  parameters.numresolution = 1 + static_cast<int>(dice.Below(3));
  while (parameters.numresolution > 1 && (1 << parameters.numresolution) > fewest) --parameters.numresolution;
  parameters.prog_order = static_cast<OPJ_PROG_ORDER>(dice.Below(5));
  parameters.image_offset_x0 = at.left;
  parameters.image_offset_y0 = at.top;
  parameters.tile_size_on = OPJ_TRUE;
  parameters.cp_tdx = at.tile_width;
  parameters.cp_tdy = at.tile_height;
  return EncodeJpeg2000(parameters, Draw(at.width, at.height, 3, dice), form.components, 8, has_boxes);
}

// Compares a picture with what OpenJPEG makes of it, if it is encoded and decoded by that.
void Compare(VirtualMachine& vm, const Form& form, const Geometry& at, const Bytes& file, Counts* counts) {
  CAPTURE(form.name, at.left, at.top, at.width, at.height, at.tile_width, at.tile_height);
  if (file.empty()) return;
  const std::optional<Bytes> whole = DecodeWhole("jpeg2000", file);
  if (!whole) return;
  const Decoded decoded = Decode(vm, file);
  if (!HasFirstSamples(form, at)) {
    ++counts->without_samples;
    CHECK(decoded.shape == std::vector<std::int64_t>{0, 0, 3});
    return;
  }
  ++counts->compared;
  REQUIRE(decoded.shape == std::vector<std::int64_t>{at.height, at.width, 3});
  CHECK((decoded.pixels == *whole));
}

// Finds the beginning of the first marker segment of a kind.
std::size_t Find(const Bytes& file, std::uint8_t marker) {
  const Bytes wanted = {0xFF, marker};
  const auto found = std::search(file.begin(), file.end(), wanted.begin(), wanted.end());
  REQUIRE(found != file.end());
  return static_cast<std::size_t>(found - file.begin());
}

TEST_CASE("image: JPEG 2000 of last tiles of 1 to 5 pixels has the pixels of the whole picture") {
  VirtualMachine vm(DecoderOf("RGB"));
  hostile::Dice dice(1);
  for (const Form& form : Forms()) {
    Counts counts;
    for (const int tile : {4, 7, 16, 33}) {
      for (int last = 0; last < 25; ++last) {
        // Half of the pictures begin within their first tile, at any place.
        const bool is_apart = dice.OneIn(2);
        Geometry at;
        at.tile_width = tile;
        at.tile_height = dice.OneIn(2) ? tile : 5 + static_cast<int>(dice.Below(9));
        at.left = is_apart ? static_cast<int>(dice.Below(static_cast<std::uint64_t>(at.tile_width))) : 0;
        at.top = is_apart ? static_cast<int>(dice.Below(static_cast<std::uint64_t>(at.tile_height))) : 0;
        const int tiles = 1 + static_cast<int>(dice.Below(2));
        at.width = tiles * at.tile_width + 1 + last % 5 - at.left;
        at.height = tiles * at.tile_height + 1 + last / 5 - at.top;
        Compare(vm, form, at, Encode(form, at, dice.OneIn(2), dice), &counts);
      }
    }
    CAPTURE(form.name);
    CHECK(counts.compared > 50);
  }
}

TEST_CASE("image: JPEG 2000 tiles of several windows have the pixels of the whole picture") {
  VirtualMachine vm(DecoderOf("RGB"));
  hostile::Dice dice(2);
  Counts counts;
  const auto compare = [&](const Form& form, const Geometry& at) {
    Compare(vm, form, at, Encode(form, at, false, dice), &counts);
  };
  for (const Form& form : Forms()) {
    compare(form, {3, 5, 900, 431, 599, 207});
    compare(form, {0, 0, 601, 209, 600, 208});
  }
  CHECK(counts.compared == 2 * static_cast<int>(Forms().size()));
}

TEST_CASE("image: JPEG 2000 whose first tile has no sample of a color has no rows") {
  VirtualMachine vm(DecoderOf("RGB"));
  hostile::Dice dice(3);
  Counts counts;
  const auto compare = [&](const Form& form, const Geometry& at) {
    Compare(vm, form, at, Encode(form, at, false, dice), &counts);
  };
  for (const Form& form : Forms()) {
    compare(form, {15, 0, 20, 20, 16, 16});
    compare(form, {0, 15, 20, 20, 16, 16});
  }
  CHECK(counts.without_samples >= 10);
}

TEST_CASE("image: a JPEG 2000 tile without any sample has those of its neighbor") {
  VirtualMachine vm(DecoderOf("RGB"));
  hostile::Dice dice(4);
  const Form form{"all of a quarter", {{2, 2}, {2, 2}, {2, 2}}, 1};
  Bytes file = Encode(form, {0, 0, 15, 16, 15, 16}, false, dice);
  REQUIRE(!file.empty());
  const Decoded before = Decode(vm, file);
  // The picture becomes wider by a pixel, for which there is a tile without data.
  constexpr std::size_t kWidth = 9;
  file[Find(file, 0x51) + kWidth] = 16;
  const Bytes tile = {0xFF, 0x90, 0, 10, 0, 1, 0, 0, 0, 14, 0, 1, 0xFF, 0x93};
  file.insert(file.end() - 2, tile.begin(), tile.end());
  const Decoded after = Decode(vm, file);
  REQUIRE(after.shape == std::vector<std::int64_t>{16, 16, 3});
  for (std::size_t y = 0; y < 16; ++y) {
    for (std::size_t x = 0; x < 16; ++x) {
      const auto pixel = [&](const Decoded& from, std::size_t width, std::size_t column) {
        const auto begin = from.pixels.begin() + static_cast<std::ptrdiff_t>((y * width + column) * 3);
        return Bytes(begin, begin + 3);
      };
      CAPTURE(x, y);
      CHECK(pixel(after, 16, x) == pixel(before, 15, std::min<std::size_t>(x, 14)));
    }
  }
}

TEST_CASE("image: settings of a JPEG 2000 component stay its own if another one has no samples") {
  VirtualMachine vm(DecoderOf("RGB"));
  hostile::Dice dice(5);
  const Form form{"a small color between others", {{1, 1}, {4, 4}, {1, 1}, {1, 1}}};
  const Geometry at{0, 0, 18, 19, 17, 17};
  Counts counts;
  for (int i = 0; i < 8; ++i) {
    Bytes file = Encode(form, at, false, dice);
    REQUIRE(!file.empty());
    // Each component has the quantization of all; that of all becomes another one.
    const std::size_t all = Find(file, 0x5C);
    const std::size_t length = 2 + std::size_t{file[all + 3]};
    const Bytes body(file.begin() + static_cast<std::ptrdiff_t>(all + 4),
                     file.begin() + static_cast<std::ptrdiff_t>(all + length));
    file[all + 5] ^= 0x18;
    for (std::uint8_t component = 0; component < 4; ++component) {
      Bytes own = {0xFF, 0x5D, 0, static_cast<std::uint8_t>(body.size() + 3), component};
      own.insert(own.end(), body.begin(), body.end());
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(all + length), own.begin(), own.end());
    }
    Compare(vm, form, at, file, &counts);
  }
  CHECK(counts.compared == 8);
}

TEST_CASE("image: JPEG 2000 that mixes components of unlike sizes has no rows") {
  VirtualMachine vm(DecoderOf("RGB"));
  hostile::Dice dice(6);
  // In a tile of one pixel all sizes are the same, or one component has no samples.
  const Form form{"a color of half the width", {{1, 1}, {2, 1}, {1, 1}, {1, 1}}};
  for (const int width : {1, 2, 9}) {
    Bytes file = Encode(form, {0, 0, width, 1, 1, 1}, false, dice);
    REQUIRE(Decode(vm, file).shape == std::vector<std::int64_t>{1, width, 3});
    file[Find(file, 0x52) + 8] = 1;
    CHECK(Decode(vm, file).shape == std::vector<std::int64_t>{0, 0, 3});
  }
}

}  // namespace
}  // namespace rewire::test
