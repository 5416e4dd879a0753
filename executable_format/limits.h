// SPDX-License-Identifier: Apache-2.0
// What a reader or verifier accepts at most. Generous for real models; a host that opens untrusted files may
// lower them.
#pragma once

#include <cstdint>

namespace rewire {

struct FormatLimits {
  std::uint32_t functions = 1u << 16;
  std::uint32_t registers = 1u << 16;  // per function
  std::uint32_t constants = 1u << 20;
  std::uint32_t kernels = 1u << 16;
  std::uint32_t code_words = 1u << 26;  // over all functions
  std::uint32_t rank = 32;
  std::uint32_t result_leaves = 4096;  // per function
  std::uint32_t type_depth = 64;       // nesting of ADTs in a signature
  std::uint32_t name_bytes = 4096;
  std::uint32_t text_bytes = 1u << 16;  // of a note, a string, a metadata value
  // What verifying may cost: per function the bytes of state, which is jump targets times registers; over all
  // functions the steps, which are instructions looked at, those of loops several times.
  std::uint64_t verifier_state = 1u << 28;
  std::uint64_t verifier_steps = 1u << 28;
};

}  // namespace rewire
