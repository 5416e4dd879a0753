// SPDX-License-Identifier: Apache-2.0
// Tests control the simulated cuBLASLt and cuDNN by this. Each of the two libraries exports these functions;
// a library without them is NVIDIA's own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rewire::simulated_libraries {

// Objects of a library that are alive: handles and descriptors.
using LiveFunction = std::uint64_t (*)();
inline constexpr char kLive[] = "rewire_simulated_library_live";
// How often a function was called since the library was opened.
using CallsFunction = std::uint64_t (*)(const char* function);
inline constexpr char kCalls[] = "rewire_simulated_library_calls";
// The next call of a function fails with a status. Null: none does.
using FailFunction = void (*)(const char* function, int status);
inline constexpr char kFail[] = "rewire_simulated_library_fail";

}  // namespace rewire::simulated_libraries
