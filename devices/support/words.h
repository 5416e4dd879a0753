// SPDX-License-Identifier: Apache-2.0
//
// The words for the last failure of each thread, which RewireDeviceApi::error gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rewire::devices {

// Sets the thread's words and returns the code for the caller.
int FailWith(int code, std::string words);
const char* LastWords();

// The failure of a device's number that none of `count` devices has.
int NoDevice(const char* kind, std::int32_t device_id, std::size_t count);

}  // namespace rewire::devices
