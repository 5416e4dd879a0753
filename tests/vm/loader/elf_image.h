// SPDX-License-Identifier: Apache-2.0
// Shared libraries made field by field, for tests of what reads them: each part can be made wrong by itself.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/shared_bytes.h"

namespace rewire::test {

// One segment holds the whole file, so addresses are offsets. A test changes a part and writes the file.
struct ElfImage {
  enum class Hash { kSystemV, kGnu };

  // Defines each name of `names` as 8 bytes of data, in the hash table of that kind.
  static ElfImage Make(const std::vector<std::string>& names, Hash kind = Hash::kSystemV);

  Elf64_Dyn& Entry(std::int64_t tag);
  SharedBytes Write() const;

  Elf64_Ehdr header{};
  Elf64_Phdr segments[2]{};        // PT_LOAD, PT_DYNAMIC
  std::vector<Elf64_Dyn> dynamic;  // string table, its size, symbol table, hash table, end
  std::vector<Elf64_Sym> symbols;  // the first is none
  std::vector<std::uint32_t> hash;
  std::string strings;
};

}  // namespace rewire::test
