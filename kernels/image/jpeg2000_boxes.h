// SPDX-License-Identifier: Apache-2.0
//
// The boxes of a .jp2 file: where the codestream is, and how its components become colors. OpenJPEG gets the
// codestream alone, so nothing else of the file makes it allocate.
#pragma once

#include <array>
#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

struct Jpeg2000Boxes {
  static constexpr int kMostChannels = 4;

  // A column of a palette.
  struct Column {
    int bits = 8;
    bool is_signed = false;
  };
  // The source of a channel: a component, perhaps by way of a column of the palette.
  struct Source {
    std::uint32_t component = 0;
    bool by_palette = false;
    std::uint32_t column = 0;
  };

  File codestream;
  bool has_differences = false;  // brightness and two differences of color
  // The palette: `entries` rows of `columns` numbers, each of as many whole bytes as its bits need.
  std::uint32_t entries = 0;
  std::uint32_t columns = 0;
  std::array<Column, kMostChannels> column{};
  File colors;
  // Channels, if the file says what they are made of; 0: they are the components.
  std::uint32_t channels = 0;
  std::array<Source, kMostChannels> source{};
  // The color of each channel: first, second, third.
  std::array<std::uint32_t, 3> color{0, 1, 2};
};

// False if the file has no codestream, or boxes that are damaged or of more than four channels. A file that
// begins with a codestream has no boxes.
bool ReadBoxes(File file, Jpeg2000Boxes* boxes);

}  // namespace rewire::kernel::image
