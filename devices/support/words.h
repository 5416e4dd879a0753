// SPDX-License-Identifier: Apache-2.0
//
// The words for the last failure of each thread, which RewireDeviceApi::error gives.
#pragma once

#include <string>

namespace rewire::devices {

// Sets the thread's words and returns the code for the caller.
int FailWith(int code, std::string words);
const char* LastWords();

}  // namespace rewire::devices
