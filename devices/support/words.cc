// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/support/words.h"

#include <utility>

#include "rewire/vm/kernel/device_api.h"

namespace rewire::devices {
namespace {

thread_local std::string t_words;

}  // namespace

int FailWith(int code, std::string words) {
  t_words = std::move(words);
  return code;
}

const char* LastWords() { return t_words.c_str(); }

int NoDevice(const char* kind, std::int32_t device_id, std::size_t count) {
  return FailWith(REWIRE_DEVICE_FAILED, std::string("there is no ") + kind + " device " +
                                            std::to_string(device_id) + "; there are " +
                                            std::to_string(count));
}

}  // namespace rewire::devices
