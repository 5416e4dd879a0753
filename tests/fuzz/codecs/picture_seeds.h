// SPDX-License-Identifier: Apache-2.0
// Whole pictures of every format in many forms, written by the formats' own libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/hostile/dice.h"

namespace rewire::test {

using Bytes = std::vector<std::uint8_t>;

struct PictureSeed {
  std::string form;  // for messages
  Bytes file;
};

// A drawing: slopes and noise, `channels` bytes a pixel.
struct Drawing {
  int width = 0, height = 0, channels = 0;
  Bytes pixels;
};
Drawing Draw(int width, int height, int channels, hostile::Dice& dice);

Bytes MakeBmp(const Drawing& drawing, hostile::Dice& dice, std::string* form);
Bytes MakePnm(const Drawing& drawing, hostile::Dice& dice, std::string* form);
Bytes MakePng(const Drawing& drawing, hostile::Dice& dice, std::string* form);
Bytes MakeJpeg(const Drawing& drawing, hostile::Dice& dice, std::string* form);
Bytes MakeJpeg2000(const Drawing& drawing, hostile::Dice& dice, std::string* form);
Bytes MakeTiff(const Drawing& drawing, hostile::Dice& dice, std::string* form);
Bytes MakeWebp(const Drawing& drawing, hostile::Dice& dice, std::string* form);

struct PictureFormat {
  const char* name;
  Bytes (*make)(const Drawing&, hostile::Dice&, std::string*);
};
inline constexpr PictureFormat kPictureFormats[] = {
    {"bmp", MakeBmp},           {"pnm", MakePnm},   {"png", MakePng},   {"jpeg", MakeJpeg},
    {"jpeg2000", MakeJpeg2000}, {"tiff", MakeTiff}, {"webp", MakeWebp},
};

// `count` pictures of a format, of up to `side` pixels a side.
std::vector<PictureSeed> MakeSeeds(const PictureFormat& format, int count, int side, std::uint64_t seed);

}  // namespace rewire::test
