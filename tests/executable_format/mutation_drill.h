// SPDX-License-Identifier: Apache-2.0
// The mutation drill: damages a good file in many ways and gives each mutant to the reader and the verifier.
//
// The file is cut at every byte, and each byte of it is changed in turn. Each mutant is tried twice: as it
// is, and with all checksums made right again. Nothing may crash, hang or trip a sanitizer. Mutants that are
// still accepted are handed on, so that a drill of the VM can run them.
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

// `file` must be a good file. Mutants are opened with verify_data. So if a mutant with its old checksums is
// accepted, the format is at fault. The drill is deterministic.
DrillReport RunMutationDrill(Span<const std::byte> file,
                             const std::function<void(const Mutant&)>& on_accepted = {});

// Makes the checksums of constants, sections and the directory right, and the size in the header. Leaves
// alone what it cannot make sense of.
void RecomputeChecksums(std::vector<std::byte>& file);

}  // namespace rewire::test
