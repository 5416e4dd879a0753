// SPDX-License-Identifier: Apache-2.0
// The fuzzers of file formats with checksums share this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewire/tests/executable_format/mutation_drill.h"

namespace rewire::test {

// Tries an input as it is and with its checksums made right, without which nearly nothing would get past the
// directory. Gives what LLVMFuzzerTestOneInput returns.
inline int TryFile(const std::uint8_t* data, std::size_t size,
                   void (*try_bytes)(const std::vector<std::byte>& file)) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(bytes, bytes + size);
  try_bytes(file);
  RecomputeChecksums(file);
  try_bytes(file);
  return 0;
}

}  // namespace rewire::test
