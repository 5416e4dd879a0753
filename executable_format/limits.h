// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/limits.h>.
//
// FormatLimits: the largest file that the reader and the verifier accept. The defaults are generous for real
// models. A host that opens untrusted files may lower them.
#pragma once

#include <chrono>
#include <cstdint>

#include "rewire/base/max_rank.h"

namespace rewire {

struct FormatLimits {
  std::uint32_t functions = 1u << 16;
  std::uint32_t registers = 1u << 16;  // of one function
  std::uint32_t constants = 1u << 20;
  std::uint32_t kernels = 1u << 16;
  std::uint32_t device_code = 1u << 10;  // blobs
  std::uint32_t device_kernels = 1u << 12;
  std::uint32_t code_words = 1u << 26;  // of all functions together
  std::uint32_t rank = kMaxRank;
  std::uint32_t result_leaves = 4096;  // leaves (result tensors) of one function
  std::uint32_t type_depth = 64;       // nesting of ADTs in a signature
  std::uint32_t name_bytes = 4096;
  std::uint32_t text_bytes = 1u << 16;  // of one note, string or metadata value
  // Bytes of state that verifying one function may hold: its jump targets times its registers.
  std::uint64_t verifier_state = 1u << 28;
  // Units of work that verifying may take (base/work_meter.h). Looking at a word of code or a table entry
  // costs a unit; code in loops is looked at several times. 0 stands for 2^25 plus 64 for each byte of code,
  // tables and texts.
  std::uint64_t verifier_steps = 0;
  // When this time has passed, verifying fails with kDeadlineExceeded.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace rewire
