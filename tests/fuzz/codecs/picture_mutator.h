// SPDX-License-Identifier: Apache-2.0
// Changes pictures as one who knows their formats would: their parts, and the numbers in the parts.
#pragma once

#include <string_view>

#include "rewire/tests/fuzz/codecs/picture_seeds.h"
#include "rewire/tests/hostile/dice.h"

namespace rewire::test {

// `other` is a picture of the same format that parts are taken from. The first bytes stay, by which a decoder
// is chosen.
Bytes Mutate(std::string_view format, const Bytes& file, const Bytes& other, hostile::Dice& dice);

// Files that were made to cost the most, and what each tries.
std::vector<PictureSeed> Attacks(std::string_view format);

}  // namespace rewire::test
