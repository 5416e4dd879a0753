// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/byte_reader.h"
#include "rewire/base/sort.h"

namespace rewire {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kThisMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kThisMachine = EM_RISCV;
#else
#error "name this machine's ELF number here"
#endif

Status DamagedElf(const Message& what) {
  return Fail(StatusCode::kInvalidFile, "damaged shared library: {}", what.Text());
}

template <typename T>
T Load(Span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

Result<ElfFile> ElfFile::Parse(SharedBytes file) {
  ElfFile elf;
  elf.file_ = std::move(file);
  Dynamic dynamic;
  if (Status status = elf.ReadHeaders(&dynamic); !status) return Forward(status);
  elf.strings_ = elf.At(dynamic.strings);
  if (dynamic.strings_size > elf.strings_.size()) return DamagedElf("its string table ends outside the file");
  elf.strings_ = elf.strings_.subspan(0, static_cast<std::size_t>(dynamic.strings_size));
  elf.name_bytes_left_ = elf.file_.view.size();
  if (dynamic.soname != 0) {
    const Result<std::string_view> soname = elf.ReadName(dynamic.soname);
    if (!soname) return Forward(soname);
    elf.soname_ = *soname;
  }
  for (std::uint64_t offset : dynamic.needed) {
    const Result<std::string_view> needed = elf.ReadName(offset);
    if (!needed) return Forward(needed);
    elf.needed_.emplace_back(*needed);
  }
  if (Status status = elf.ReadSymbols(dynamic); !status) return Forward(status);
  return elf;
}

Status ElfFile::ReadHeaders(Dynamic* dynamic) {
  ByteReader reader(file_.view);
  const auto header = reader.Read<Elf64_Ehdr>();
  if (file_.view.size() < SELFMAG || std::memcmp(file_.view.data(), ELFMAG, SELFMAG) != 0) {
    return Fail(StatusCode::kInvalidFile,
                "not a shared library: it does not begin as an ELF file does; link one with -shared");
  }
  if (!reader.ok()) return DamagedElf("it ends inside the ELF header");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kThisMachine) {
    return Fail(
        StatusCode::kInvalidFile,
        "built for another machine (ELF class {}, machine {}), this process needs class 2, machine {}",
        header.e_ident[EI_CLASS], header.e_machine, kThisMachine);
  }
  if (header.e_type != ET_DYN) {
    return Fail(StatusCode::kInvalidFile,
                "an ELF file of type {}, expected a shared library (type 3); link it with -shared",
                header.e_type);
  }
  if (header.e_phoff > file_.view.size() || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return DamagedElf("its program headers are outside the file");
  }
  const Span<const std::byte> after = file_.view.subspan(static_cast<std::size_t>(header.e_phoff));
  if (header.e_phnum > after.size() / sizeof(Elf64_Phdr)) {
    return DamagedElf("its program headers end outside the file");
  }
  Span<const std::byte> table;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto program = Load<Elf64_Phdr>(after, i);
    if (program.p_type != PT_LOAD && program.p_type != PT_DYNAMIC) continue;
    if (program.p_offset > file_.view.size() || program.p_filesz > file_.view.size() - program.p_offset) {
      return DamagedElf({"segment {} ends outside the file", i});
    }
    if (program.p_type == PT_LOAD) {
      segments_.push_back({program.p_vaddr, program.p_offset, program.p_filesz});
    } else {
      table = file_.view.subspan(static_cast<std::size_t>(program.p_offset),
                                 static_cast<std::size_t>(program.p_filesz));
    }
  }
  for (std::size_t i = 0; i < table.size() / sizeof(Elf64_Dyn); ++i) {
    const auto entry = Load<Elf64_Dyn>(table, i);
    if (entry.d_tag == DT_NULL) break;
    const std::uint64_t value = entry.d_un.d_val;
    if (entry.d_tag == DT_STRTAB) dynamic->strings = value;
    if (entry.d_tag == DT_STRSZ) dynamic->strings_size = value;
    if (entry.d_tag == DT_SYMTAB) dynamic->symbols = value;
    if (entry.d_tag == DT_HASH) dynamic->hash = value;
    if (entry.d_tag == DT_GNU_HASH) dynamic->gnu_hash = value;
    if (entry.d_tag == DT_SONAME) dynamic->soname = value;
    if (entry.d_tag == DT_NEEDED) dynamic->needed.push_back(value);
  }
  if (dynamic->strings == 0 || dynamic->symbols == 0) {
    return Fail(StatusCode::kInvalidFile,
                "an ELF file without a dynamic symbol table, expected a shared library");
  }
  return {};
}

// From an address of the loaded library to the end of its segment's part of the file; empty when it is in
// none.
Span<const std::byte> ElfFile::At(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address < segment.address || address - segment.address >= segment.size) continue;
    const std::uint64_t skipped = address - segment.address;
    return file_.view.subspan(static_cast<std::size_t>(segment.offset + skipped),
                              static_cast<std::size_t>(segment.size - skipped));
  }
  return {};
}

Result<std::string_view> ElfFile::ReadName(std::uint64_t offset) {
  if (offset >= strings_.size()) return DamagedElf("a name begins outside its string table");
  const char* text = reinterpret_cast<const char*>(strings_.data()) + offset;
  const std::size_t room = strings_.size() - static_cast<std::size_t>(offset);
  const std::size_t size = strnlen(text, std::min(room, name_bytes_left_));
  if (size == room) return DamagedElf("the last name of its string table has no end");
  if (size == name_bytes_left_) return DamagedElf("its names together are longer than the file");
  name_bytes_left_ -= size + 1;
  return std::string_view(text, size);
}

// Looks at no more than the name and the byte that ends it.
bool ElfFile::IsNamed(std::uint64_t offset, std::string_view name) const {
  if (offset >= strings_.size() || strings_.size() - offset <= name.size()) return false;
  const std::byte* text = strings_.data() + offset;
  return std::memcmp(text, name.data(), name.size()) == 0 && text[name.size()] == std::byte{0};
}

// The file does not say how many symbols it has; its hash tables do.
Result<std::uint64_t> ElfFile::CountSymbols(const Dynamic& dynamic) const {
  if (dynamic.hash != 0) {
    const Span<const std::byte> hash = At(dynamic.hash);
    if (hash.size() < 2 * sizeof(std::uint32_t)) return DamagedElf("its hash table is outside the file");
    return Load<std::uint32_t>(hash, 1);  // nchain
  }
  // GNU: header {buckets, first hashed symbol, bloom words, shift}, bloom filter, buckets, one word for each
  // hashed symbol, the last of a chain odd. The last chain begins at the highest bucket.
  const Span<const std::byte> hash = At(dynamic.gnu_hash);
  if (dynamic.gnu_hash == 0 || hash.size() < 4 * sizeof(std::uint32_t)) {
    return DamagedElf("it has no hash table for its symbols");
  }
  const std::uint64_t bucket_count = Load<std::uint32_t>(hash, 0);
  const std::uint64_t first_hashed = Load<std::uint32_t>(hash, 1);
  const std::uint64_t buckets_at = 4 + 2 * std::uint64_t{Load<std::uint32_t>(hash, 2)};  // in words
  const std::uint64_t words = hash.size() / sizeof(std::uint32_t);
  if (buckets_at > words || bucket_count > words - buckets_at)
    return DamagedElf("its hash table ends outside the file");
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < bucket_count; ++i) {
    last = std::max<std::uint64_t>(last, Load<std::uint32_t>(hash, static_cast<std::size_t>(buckets_at + i)));
  }
  if (last < first_hashed) return first_hashed;  // nothing is exported
  for (const std::uint64_t chains_at = buckets_at + bucket_count;; ++last) {
    const std::uint64_t word = chains_at + (last - first_hashed);
    if (word >= words) return DamagedElf("a chain of its hash table ends outside the file");
    if ((Load<std::uint32_t>(hash, static_cast<std::size_t>(word)) & 1) != 0) return last + 1;
  }
}

Status ElfFile::ReadSymbols(const Dynamic& dynamic) {
  const Result<std::uint64_t> count = CountSymbols(dynamic);
  if (!count) return Forward(count);
  symbols_ = At(dynamic.symbols);
  if (*count > symbols_.size() / sizeof(Elf64_Sym))
    return DamagedElf("its symbol table ends outside the file");
  symbols_ = symbols_.subspan(0, static_cast<std::size_t>(*count) * sizeof(Elf64_Sym));
  for (std::size_t i = 1; i < *count; ++i) {  // symbol 0 is none
    const auto symbol = Load<Elf64_Sym>(symbols_, i);
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
    const Result<std::string_view> name = ReadName(symbol.st_name);
    if (!name) return Forward(name);
    if (name->empty()) continue;
    if (symbol.st_shndx != SHN_UNDEF) {
      defined_.push_back(*name);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) functions_.push_back(*name);
    } else if (ELF64_ST_BIND(symbol.st_info) != STB_WEAK) {
      undefined_.push_back(*name);
    }
  }
  for (Array<std::string_view>* names : {&defined_, &functions_, &undefined_}) {
    Sort(*names);
    names->erase(std::unique(names->begin(), names->end()), names->end());  // a name may have versions
  }
  return {};
}

bool ElfFile::Defines(std::string_view name) const {
  return std::binary_search(defined_.begin(), defined_.end(), name);
}

bool ElfFile::DefinesPrefix(std::string_view prefix) const {
  const auto first = std::lower_bound(defined_.begin(), defined_.end(), prefix);
  return first != defined_.end() && first->starts_with(prefix);
}

Array<std::string> ElfFile::NamesAfter(std::string_view prefix) const {
  Array<std::string> names;
  for (auto name = std::lower_bound(defined_.begin(), defined_.end(), prefix);
       name != defined_.end() && name->starts_with(prefix); ++name) {
    names.emplace_back(name->substr(prefix.size()));
  }
  return names;
}

bool ElfFile::HasText(std::string_view text) const {
  return memmem(file_.view.data(), file_.view.size(), text.data(), text.size()) != nullptr;
}

Result<Span<const std::byte>> ElfFile::SymbolBytes(std::string_view name) const {
  for (std::size_t i = 1; i < symbols_.size() / sizeof(Elf64_Sym); ++i) {
    const auto symbol = Load<Elf64_Sym>(symbols_, i);
    if (symbol.st_shndx == SHN_UNDEF || !IsNamed(symbol.st_name, name)) continue;
    const Span<const std::byte> bytes = At(symbol.st_value);
    if (symbol.st_size > bytes.size()) return DamagedElf({"its data '{}' ends outside the file", name});
    return bytes.subspan(0, static_cast<std::size_t>(symbol.st_size));
  }
  return Fail(StatusCode::kNotFound, "it has no symbol '{}'", name);
}

}  // namespace rewire
