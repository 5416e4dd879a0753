// SPDX-License-Identifier: Apache-2.0
#include "tests/executable_format/import/foreign_drill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "executable_format/executable.h"
#include "executable_format/import/relay_file.h"
#include "executable_format/import/tvm.h"
#include "tests/executable_format/import/foreign_files.h"
#include "tests/executable_format/import/memory_watch.h"

namespace rewire::tvm {
namespace {

using Random = std::mt19937_64;

std::uint64_t Below(Random& random, std::uint64_t limit) { return limit == 0 ? 0 : random() % limit; }

// A number that a reader might stumble over.
std::int64_t OddNumber(Random& random, std::int64_t before) {
  const auto bits = static_cast<std::uint64_t>(before);  // unsigned, for the overflows
  switch (Below(random, 8)) {
    case 0:
      return static_cast<std::int64_t>(bits + 1);
    case 1:
      return static_cast<std::int64_t>(bits - 1);
    case 2:
      return static_cast<std::int64_t>(0 - bits);
    case 3:
      return static_cast<std::int64_t>(std::uint64_t{1} << Below(random, 64));
    case 4:
      return static_cast<std::int64_t>(random());
    case 5:
      return INT64_MAX;
    default:
      return static_cast<std::int64_t>(Below(random, 24));
  }
}

// Cuts, flips, overwrites with odd numbers, moves pieces.
std::string Damage(std::string bytes, Random& random) {
  if (bytes.size() < 16) return bytes;
  for (std::uint64_t changes = 1 + Below(random, 3); changes > 0; --changes) {
    const std::size_t at = Below(random, bytes.size() - 8);
    const std::size_t other = Below(random, bytes.size() - 8);
    const std::size_t size = 1 + Below(random, std::min<std::size_t>(64, bytes.size() - std::max(at, other)));
    switch (Below(random, 10)) {
      case 0:
        bytes.resize(std::max<std::size_t>(at, 16));
        break;
      case 1:
        bytes.insert(at, bytes.substr(other, size));
        break;
      case 2:
        bytes.replace(at, size, bytes.substr(other, size));
        break;
      case 3:
      case 4:
      case 5: {
        std::int64_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof(value));
        value = OddNumber(random, value);
        std::memcpy(bytes.data() + at, &value, sizeof(value));
        break;
      }
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(random, 8)));
    }
  }
  return bytes;
}

// Where the words of each instruction start: its hash.
std::vector<std::size_t> FindInstructions(const std::string& file, const RelayFile& parsed) {
  std::vector<std::size_t> places;
  std::size_t from = 0;
  for (const RelayFunction& function : parsed.functions) {
    for (const RelayInstruction& instruction : function.instructions) {
      const auto opcode = static_cast<std::int64_t>(instruction.opcode);
      // In 0.8 the parsed device fields differ from the file's, and with them the hash: such are passed over.
      StreamWriter words;
      words.Count(2 + instruction.fields.size());
      words.Put(RelayInstructionHash(opcode, instruction.fields));
      words.Put(opcode);
      for (std::int64_t value : instruction.fields) words.Put(value);
      const std::size_t found = file.find(words.bytes(), from);
      if (found == std::string::npos) continue;
      places.push_back(found + sizeof(std::uint64_t));
      from = found + words.bytes().size();
    }
  }
  return places;
}

// Changes one field of an instruction, or its opcode, and makes the hash right.
std::string ChangeField(std::string bytes, std::size_t place, Random& random) {
  std::uint64_t count = 0;
  std::memcpy(&count, bytes.data() + place - sizeof(count), sizeof(count));
  std::vector<std::int64_t> words(count);  // hash, opcode, fields
  std::memcpy(words.data(), bytes.data() + place, count * sizeof(std::int64_t));
  std::int64_t& changed = words[1 + Below(random, count - 1)];
  changed = OddNumber(random, changed);
  words[0] = RelayInstructionHash(words[1], {words.data() + 2, count - 2});
  std::memcpy(bytes.data() + place, words.data(), count * sizeof(std::int64_t));
  return bytes;
}

Result<Module> ImportBlob(const SharedBytes& bytes) {
  Result<LibraryBlob> blob = ReadLibraryBlob(bytes.view);
  if (!blob) return Forward(blob);
  if (blob->graph_json.empty()) return ImportRelayExecutable({blob->relay_executable, bytes.owner});
  return ImportGraph(blob->graph_json, blob->parameters, bytes.owner);
}

void Import(ForeignKind kind, const SharedBytes& bytes, ForeignDrillCounts& counts) {
  Result<Module> module = Module();
  switch (kind) {
    case ForeignKind::kRelay:
      module = ImportRelayExecutable(bytes);
      break;
    case ForeignKind::kGraph:
      module =
          ImportGraph({reinterpret_cast<const char*>(bytes.view.data()), bytes.view.size()}, {}, nullptr);
      break;
    case ForeignKind::kParameters:
      if (ReadParameterList(bytes.view)) ++counts.past_reader;
      return;
    case ForeignKind::kLibraryBlob:
      module = ImportBlob(bytes);
      break;
  }
  if (!module) return;
  ++counts.past_reader;
  if (Executable::FromModule(std::move(*module))) ++counts.past_verifier;
}

void Try(ForeignKind kind, std::string mutant, ForeignDrillCounts& counts) {
  ++counts.mutants;
  const SharedBytes bytes = Share(std::move(mutant));
  const MemoryWatch memory;
  Import(kind, bytes, counts);
  const std::uint64_t allowed = kMemoryPerByte * bytes.view.size();
  counts.peak_bytes = std::max<std::uint64_t>(counts.peak_bytes, memory.peak());
  counts.peak_beyond =
      std::max<std::uint64_t>(counts.peak_beyond, memory.peak() - std::min(memory.peak(), allowed));
}

}  // namespace

ForeignDrillCounts& ForeignDrillCounts::operator+=(const ForeignDrillCounts& other) {
  mutants += other.mutants;
  past_reader += other.past_reader;
  past_verifier += other.past_verifier;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  peak_beyond = std::max(peak_beyond, other.peak_beyond);
  return *this;
}

std::string ForeignDrillCounts::Text() const {
  const double total = mutants == 0 ? 1 : static_cast<double>(mutants);
  return fmt::format(
      "{} mutants, {:.1f} % past the reader, {:.1f} % past the verifier, at most {:.0f} KiB of memory",
      mutants, 100 * static_cast<double>(past_reader) / total,
      100 * static_cast<double>(past_verifier) / total, static_cast<double>(peak_bytes) / 1024);
}

ForeignDrillReport RunForeignDrill(ForeignKind kind, const std::string& file, std::uint64_t mutants) {
  Random random(file.size());
  ForeignDrillReport report;
  std::vector<std::size_t> places;
  if (kind == ForeignKind::kRelay) {
    const SharedBytes bytes = Share(file);
    if (Result<RelayFile> parsed = ReadRelayFile(bytes.view)) places = FindInstructions(file, *parsed);
  }
  const std::uint64_t recomputed = places.empty() ? 0 : mutants / 2;
  for (std::uint64_t i = 0; i < mutants - recomputed; ++i) Try(kind, Damage(file, random), report.plain);
  for (std::uint64_t i = 0; i < recomputed; ++i) {
    Try(kind, ChangeField(file, places[Below(random, places.size())], random), report.recomputed);
  }
  return report;
}

}  // namespace rewire::tvm
