// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/style.h"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>

namespace rewire::tools {
namespace {

const char* CodeOf(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "\033[1m";
    case Ink::kRed:
      return "\033[1;31m";
    case Ink::kGreen:
      return "\033[32m";
    case Ink::kYellow:
      return "\033[33m";
    case Ink::kDim:
      return "\033[2m";
  }
  return "";
}

}  // namespace

bool WantsColor(std::FILE* stream) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fileno(stream)) == 1 && (refused == nullptr || *refused == '\0') && terminal != nullptr &&
         std::strcmp(terminal, "dumb") != 0;
}

bool TakesUnicode() {
  std::setlocale(LC_CTYPE, "");
  return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

std::string Inked(const std::string& text, Ink ink, bool colored) {
  return colored ? CodeOf(ink) + text + "\033[0m" : text;
}

}  // namespace rewire::tools
