// SPDX-License-Identifier: Apache-2.0
// Decodes a whole picture at once by the format's own library, without limits.
#pragma once

#include <optional>
#include <string_view>

#include "rewire/tests/fuzz/codecs/picture_seeds.h"

namespace rewire::test {

// Red, green and blue of each pixel. nullopt if the library refuses the file. Empty if it reads the file, but
// its pixels are not to be compared: they are transparent, or brightness and differences of color.
std::optional<Bytes> DecodeWhole(std::string_view format, const Bytes& file);

}  // namespace rewire::test
