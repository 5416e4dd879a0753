// SPDX-License-Identifier: Apache-2.0
// Damages good foreign files in many ways and imports, verifies and links what comes out. Each of these may
// refuse a mutant, with an error; none may crash, hang or use memory out of proportion.
#pragma once

#include <cstdint>
#include <string>

namespace rewire::tvm {

// Importing a mutant may take this much for each of its bytes, and this much beside.
inline constexpr std::uint64_t kMemoryPerByte = 64;
inline constexpr std::uint64_t kMemoryBeyond = 1 << 20;
// A mutant on which all of it takes longer ends the process, which says which one it was.
inline constexpr unsigned kSecondsAMutant = 20;

enum class ForeignKind { kRelay, kGraph, kParameters, kLibraryBlob, kLibrary };

struct ForeignDrillCounts {
  std::uint64_t mutants = 0;
  std::uint64_t past_reader = 0;  // the importer gave a module (for parameters a list, for libraries symbols)
  std::uint64_t past_verifier = 0;
  std::uint64_t past_linker = 0;  // every kernel is there and does nothing
  // The memory that importing one mutant took at most, and of that beyond kMemoryPerByte times its size.
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_beyond = 0;
  double slowest = 0;  // seconds

  ForeignDrillCounts& operator+=(const ForeignDrillCounts& other);
  bool memory_bounded() const { return peak_beyond <= kMemoryBeyond; }
  // "10000 mutants: 12.3 % past the reader, 4.5 % past the verifier, 4.0 % past the linker; at most 120 KiB,
  // 1.3 ms".
  std::string Text() const;
};

struct ForeignDrillReport {
  ForeignDrillCounts plain;
  // Counts of kinds whose format the drill knows: fields of instructions with their hash made right (Relay),
  // values (graphs), tables (libraries).
  ForeignDrillCounts aware;
};

// `file` is a good one; for a graph its JSON. Half of the mutants are made by what knows the format, where
// there is such. The same for the same file and seed.
ForeignDrillReport RunForeignDrill(ForeignKind kind, const std::string& file, std::uint64_t mutants,
                                   std::uint64_t seed = 1);

}  // namespace rewire::tvm
