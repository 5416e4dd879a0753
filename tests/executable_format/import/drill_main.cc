// SPDX-License-Identifier: Apache-2.0
// import_drill MUTANTS SEED FILE...: drills files of a kind that their names tell: .ro, .json, .params, .so.
// Of a library both its tables and, where it has that, the data behind __tvm_dev_mblob. MUTANTS are spread
// over the files of each kind.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/executable_format/import/foreign_drill.h"
#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/vm/loader/elf_file.h"

namespace {

using rewire::tvm::ForeignKind;

struct Kind {
  const char* name;
  const char* extension;
  ForeignKind kind;
};
constexpr Kind kKinds[] = {{"Relay VM executables", "ro", ForeignKind::kRelay},
                           {"graphs", "json", ForeignKind::kGraph},
                           {"parameter files", "params", ForeignKind::kParameters},
                           {"exported models", "so", ForeignKind::kLibraryBlob},
                           {"libraries", "so", ForeignKind::kLibrary}};

// Reads the part of a file that is drilled; empty when there is nothing.
std::string ReadDrilled(const std::string& path, ForeignKind kind) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (kind != ForeignKind::kLibraryBlob) return bytes;
  const auto elf = rewire::ElfFile::Parse(rewire::tvm::Share(std::move(bytes)));
  if (!elf) return "";
  const auto blob = elf->SymbolBytes("__tvm_dev_mblob");
  if (!blob) return "";
  return {reinterpret_cast<const char*>(blob->data()), blob->size()};
}

// Drills the files of one kind; false when something is wrong with what was counted.
bool Drill(const Kind& kind, const std::vector<std::string>& files, std::uint64_t mutants,
           std::uint64_t seed) {
  const std::uint64_t each = (mutants + files.size() - 1) / files.size();
  rewire::tvm::ForeignDrillReport total;
  for (const std::string& bytes : files) {
    const auto report = RunForeignDrill(kind.kind, bytes, each, seed);
    total.plain += report.plain;
    total.aware += report.aware;
  }
  fmt::print("{}: {} files\n  damaged: {}\n", kind.name, files.size(), total.plain.Text());
  if (total.aware.mutants > 0) fmt::print("  changed with the format in mind: {}\n", total.aware.Text());
  if (!total.plain.memory_bounded() || !total.aware.memory_bounded()) {
    fmt::print("{}: a mutant took more memory than {} bytes for each of its own\n", kind.name,
               rewire::tvm::kMemoryPerByte);
    return false;
  }
  if (10 * total.aware.past_reader < total.aware.mutants) {
    fmt::print("{}: fewer than 10 % of the mutants pass the reader, so what is behind it is not drilled\n",
               kind.name);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: import_drill MUTANTS SEED FILE...\n");
    return 2;
  }
  const std::uint64_t mutants = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  bool right = true;
  for (const Kind& kind : kKinds) {
    std::vector<std::string> files;
    for (int i = 3; i < argc; ++i) {
      const std::string path = argv[i];
      if (path.substr(path.rfind('.') + 1) != kind.extension) continue;
      std::string bytes = ReadDrilled(path, kind.kind);
      if (!bytes.empty()) files.push_back(std::move(bytes));
    }
    if (files.empty()) {
      fmt::print(stderr, "import_drill: none of the files has {}\n", kind.name);
      return 2;
    }
    right = Drill(kind, files, mutants, seed) && right;
  }
  return right ? 0 : 1;
}
