// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/support/words.h"

#include <utility>

namespace rewire::devices {
namespace {

thread_local std::string t_words;

}  // namespace

int FailWith(int code, std::string words) {
  t_words = std::move(words);
  return code;
}

const char* LastWords() { return t_words.c_str(); }

}  // namespace rewire::devices
