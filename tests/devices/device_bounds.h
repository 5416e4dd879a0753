// SPDX-License-Identifier: Apache-2.0
//
// Bounds of memory beside what runs on a device take.
#pragma once

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "rewire/tests/devices/test_device.h"

namespace rewire::test {

// Bytes that bounds have for calls of NVIDIA's libraries. A library decides by the shape whether it takes
// them, so a run takes all or nothing. 0 where no library is used.
inline std::uint64_t LibraryScratch() {
  const char* folder = std::getenv("REWIRE_LIBRARY_PATH");
  if (DeviceName() != "cuda" || folder == nullptr) return 0;
  void* kernels = dlopen((std::string(folder) + "/librewire_kernels_device.so").c_str(), RTLD_NOW);
  REQUIRE(kernels != nullptr);
  const auto libraries =
      reinterpret_cast<const char* (*)()>(dlsym(kernels, "rewire_device_kernel_libraries"));
  REQUIRE(libraries != nullptr);
  // A library that is there is named with its version.
  const std::string text = libraries();
  for (const std::string name : {"cuBLASLt ", "cuDNN "}) {
    const std::size_t at = text.find(name);
    if (at != std::string::npos && std::isdigit(static_cast<unsigned char>(text[at + name.size()])) != 0) {
      return (std::uint64_t{32} << 20) + 1024;
    }
  }
  return 0;
}

// The bound is what the run took, but for what a library may have done without.
inline void CheckPeak(std::uint64_t peak, std::uint64_t bound) {
  CHECK(peak <= bound);
  CHECK(bound <= peak + LibraryScratch());
}

}  // namespace rewire::test
