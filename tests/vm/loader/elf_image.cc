// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/loader/elf_image.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace rewire::test {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
constexpr std::uint16_t kMachine = EM_RISCV;
#endif

template <typename T>
void Append(std::string& file, const T* values, std::size_t count) {
  file.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

}  // namespace

ElfImage ElfImage::Make(const std::vector<std::string>& names, Hash kind) {
  ElfImage image;
  image.strings.assign(1, '\0');
  image.symbols.resize(1);
  for (const std::string& name : names) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<std::uint32_t>(image.strings.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_shndx = 1;
    symbol.st_size = 8;
    image.symbols.push_back(symbol);
    image.strings += name;
    image.strings += '\0';
  }
  const auto count = static_cast<std::uint32_t>(image.symbols.size());
  if (kind == Hash::kSystemV) {
    image.hash = {1, count, 0, 0};
  } else {
    // One bucket, one bloom word; all symbols but the first in one chain, whose last word is odd.
    image.hash = {1, 1, 1, 0, 0, 0, 1};
    image.hash.resize(image.hash.size() + count - 2, 2);
    image.hash.push_back(1);
  }

  const std::uint64_t dynamic_at = sizeof(Elf64_Ehdr) + sizeof(image.segments);
  const std::uint64_t symbols_at = dynamic_at + 5 * sizeof(Elf64_Dyn);
  const std::uint64_t hash_at = symbols_at + count * sizeof(Elf64_Sym);
  const std::uint64_t strings_at = hash_at + image.hash.size() * sizeof(std::uint32_t);
  const std::uint64_t size = strings_at + image.strings.size();
  const auto entry = [&](std::int64_t tag, std::uint64_t value) {
    Elf64_Dyn dynamic{};
    dynamic.d_tag = tag;
    dynamic.d_un.d_val = value;
    image.dynamic.push_back(dynamic);
  };
  entry(DT_STRTAB, strings_at);
  entry(DT_STRSZ, image.strings.size());
  entry(DT_SYMTAB, symbols_at);
  entry(kind == Hash::kSystemV ? std::int64_t{DT_HASH} : std::int64_t{DT_GNU_HASH}, hash_at);
  entry(DT_NULL, 0);

  std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_ident[EI_CLASS] = ELFCLASS64;
  image.header.e_ident[EI_DATA] = ELFDATA2LSB;
  image.header.e_type = ET_DYN;
  image.header.e_machine = kMachine;
  image.header.e_phoff = sizeof(Elf64_Ehdr);
  image.header.e_phentsize = sizeof(Elf64_Phdr);
  image.header.e_phnum = 2;
  image.segments[0].p_type = PT_LOAD;
  image.segments[0].p_filesz = size;
  image.segments[1].p_type = PT_DYNAMIC;
  image.segments[1].p_offset = dynamic_at;
  image.segments[1].p_vaddr = dynamic_at;
  image.segments[1].p_filesz = image.dynamic.size() * sizeof(Elf64_Dyn);
  return image;
}

Elf64_Dyn& ElfImage::Entry(std::int64_t tag) {
  const auto found = std::find_if(dynamic.begin(), dynamic.end(),
                                  [&](const Elf64_Dyn& entry) { return entry.d_tag == tag; });
  if (found == dynamic.end()) throw std::invalid_argument("no such dynamic entry");
  return *found;
}

SharedBytes ElfImage::Write() const {
  const auto file = std::make_shared<std::string>();
  Append(*file, &header, 1);
  Append(*file, segments, 2);
  Append(*file, dynamic.data(), dynamic.size());
  Append(*file, symbols.data(), symbols.size());
  Append(*file, hash.data(), hash.size());
  *file += strings;
  return {{reinterpret_cast<const std::byte*>(file->data()), file->size()}, file};
}

}  // namespace rewire::test
