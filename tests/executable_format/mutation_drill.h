// SPDX-License-Identifier: Apache-2.0
// The drill: a good file cut at every byte and with every byte changed, as it is and with all checksums made
// right again, goes through reader and verifier. Nothing may crash, hang or trip a sanitizer; what still is
// accepted is handed on, so that a drill of the VM can run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/executable_format/executable.h"

namespace rewire::test {

struct DrillCounts {
  std::uint64_t mutants = 0;
  std::uint64_t past_reader = 0;
  std::uint64_t past_verifier = 0;

  DrillCounts& operator+=(const DrillCounts& other);
  // "1234 mutants, 56.7 % past the reader, 12.3 % past the verifier".
  std::string Text() const;
};

struct DrillReport {
  DrillCounts plain;       // checksums left as they were
  DrillCounts recomputed;  // checksums made right again
};

struct Mutant {
  std::string what;  // "byte 17 ^ 0x01, checksums recomputed"
  bool recomputed;
  Executable executable;
};

// `file` is a good one. Opened with verify_data, so that a mutant with its old checksums that is accepted is
// a fault of the format. Deterministic.
DrillReport RunMutationDrill(Span<const std::byte> file,
                             const std::function<void(const Mutant&)>& on_accepted = {});

// Makes all checksums right: of constants, sections and the directory, and the size in the header. Leaves
// alone what it cannot make sense of.
void RecomputeChecksums(std::vector<std::byte>& file);

}  // namespace rewire::test
