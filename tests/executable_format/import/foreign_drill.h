// SPDX-License-Identifier: Apache-2.0
// Damages good foreign files in many ways and imports what comes out. The importer and the verifier may
// refuse a mutant, with an error; they may not crash, hang or use memory out of proportion.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "executable_format/module.h"

namespace rewire::tvm {

// A mutant may take this much for each of its bytes, and this much beside.
inline constexpr std::uint64_t kMemoryPerByte = 64;
inline constexpr std::uint64_t kMemoryBeyond = 1 << 20;

enum class ForeignKind { kRelay, kGraph, kParameters, kLibraryBlob };

struct ForeignDrillCounts {
  std::uint64_t mutants = 0;
  std::uint64_t past_reader = 0;  // the importer gave a module (for parameters: a list)
  std::uint64_t past_verifier = 0;
  // What one mutant took at most, and of that beyond kMemoryPerByte times its size.
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_beyond = 0;

  ForeignDrillCounts& operator+=(const ForeignDrillCounts& other);
  bool memory_bounded() const { return peak_beyond <= kMemoryBeyond; }
  // "10000 mutants, 12.3 % past the reader, 4.5 % past the verifier, at most 120 KiB of memory".
  std::string Text() const;
};

struct ForeignDrillReport {
  ForeignDrillCounts plain;
  // Relay alone: a changed field of an instruction, its hash made right. The other kinds have no hashes.
  ForeignDrillCounts recomputed;
};

// `file` is a good one; for a graph its JSON. Half of a Relay file's `mutants` are recomputed. Deterministic.
ForeignDrillReport RunForeignDrill(ForeignKind kind, const std::string& file, std::uint64_t mutants);

}  // namespace rewire::tvm
