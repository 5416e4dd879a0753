// SPDX-License-Identifier: Apache-2.0
//
// Bytes looked up in a table of 256, with the CPU's vector instructions.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// to[i] = table[from[i]], of 256 bytes. `to` overlaps nothing.
using MapBytes = void (*)(const std::uint8_t* from, std::int64_t count, const std::uint8_t* table,
                          std::uint8_t* to);
MapBytes ChooseMapBytes();
inline MapBytes BestMapBytes() {
  static const MapBytes kBest = ChooseMapBytes();
  return kBest;
}

}  // namespace rewire::kernel::cpu
