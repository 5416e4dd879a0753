// SPDX-License-Identifier: Apache-2.0
//
// Colors for people: on terminals only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace rewire::tools {

enum class Ink : std::uint8_t { kBold, kRed, kGreen, kYellow, kDim };

// Whether what is printed there may have colors: it is a terminal that knows them, and NO_COLOR
// (https://no-color.org) is not set.
bool WantsColor(std::FILE* stream);
// Whether its reader takes more than ASCII, by the locale.
bool TakesUnicode();

// The text, in this ink if `colored`.
std::string Inked(const std::string& text, Ink ink, bool colored);

}  // namespace rewire::tools
