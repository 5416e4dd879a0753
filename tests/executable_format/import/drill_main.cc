// SPDX-License-Identifier: Apache-2.0
// import_drill MUTANTS FILE...: drills files of a kind that their names tell: .ro, .json, .params, .so (the
// data behind an exported library's __tvm_dev_mblob). MUTANTS are spread over the files of each kind.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "tests/executable_format/import/foreign_drill.h"
#include "tests/executable_format/import/foreign_files.h"
#include "vm/loader/elf_file.h"

namespace {

using rewire::tvm::ForeignKind;

const std::map<std::string, ForeignKind> kKinds = {{"ro", ForeignKind::kRelay},
                                                   {"json", ForeignKind::kGraph},
                                                   {"params", ForeignKind::kParameters},
                                                   {"so", ForeignKind::kLibraryBlob}};

// What is drilled of a file; empty when there is nothing.
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

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::vector<std::string>> files;
  for (int i = 2; i < argc; ++i) {
    const std::string path = argv[i];
    const std::string extension = path.substr(path.rfind('.') + 1);
    if (kKinds.count(extension) == 0) {
      fmt::print(stderr, "import_drill: {} is of no known kind\n", path);
      return 2;
    }
    files[extension].push_back(path);
  }
  if (files.empty()) {
    fmt::print(stderr, "usage: import_drill MUTANTS FILE...\n");
    return 2;
  }
  const std::uint64_t mutants = std::strtoull(argv[1], nullptr, 10);
  for (const auto& [extension, paths] : files) {
    rewire::tvm::ForeignDrillReport total;
    for (const std::string& path : paths) {
      const std::string bytes = ReadDrilled(path, kKinds.at(extension));
      if (bytes.empty()) {
        fmt::print(stderr, "import_drill: {} cannot be read, or has nothing that TVM put into it\n", path);
        return 2;
      }
      const auto report =
          RunForeignDrill(kKinds.at(extension), bytes, (mutants + paths.size() - 1) / paths.size());
      total.plain += report.plain;
      total.recomputed += report.recomputed;
    }
    fmt::print("{}: {} files, plain: {}\n", extension, paths.size(), total.plain.Text());
    if (!total.plain.memory_bounded() || !total.recomputed.memory_bounded()) {
      fmt::print("{}: a mutant took more memory than {} bytes for each of its own\n", extension,
                 rewire::tvm::kMemoryPerByte);
      return 1;
    }
    if (total.recomputed.mutants == 0) continue;
    fmt::print("{}: hashes recomputed: {}\n", extension, total.recomputed.Text());
    if (5 * total.recomputed.past_reader < total.recomputed.mutants) {
      fmt::print(
          "{}: fewer than 20 % of the recomputed mutants pass the reader, so the verifier is not drilled\n",
          extension);
      return 1;
    }
  }
  return 0;
}
