// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "rewire/base/mapped_file.h"
#include "rewire/tests/vm/loader/elf_image.h"
#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/loader/library_abi.h"

namespace rewire {
namespace {

using test::ElfImage;
using test::MessageOf;
using test::TestLibrary;

SharedBytes Own(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return {Span<const std::byte>(*owner), owner};
}

std::vector<std::byte> Content(const std::string& library) {
  const SharedBytes file = *ReadFile(TestLibrary(library));
  return {file.view.begin(), file.view.end()};
}

// Uses everything that a parsed file offers: nothing of it may leave the file.
void Touch(const ElfFile& elf) {
  (void)FindAbi(elf);
  (void)elf.NamesAfter("__tvm_ffi_");
  for (std::string_view name : elf.defined()) {
    if (const auto bytes = elf.SymbolBytes(name); bytes && !bytes->empty()) {
      (void)std::count(bytes->begin(), bytes->end(), std::byte{0});
    }
  }
}

TEST_CASE("symbols, needed libraries and data of a shared library are read from the file") {
  const ElfFile linked = *ElfFile::Parse(Own(Content("linked")));
  CHECK(std::count(linked.needed().begin(), linked.needed().end(), "libtvm_ffi.so") == 1);
  CHECK(linked.Defines("__tvm_ffi_parts"));
  CHECK_FALSE(linked.Defines("__tvm_ffi_part"));
  CHECK(linked.DefinesPrefix("__tvm_ffi_"));
  CHECK_FALSE(linked.DefinesPrefix("__tvm_ffi_z"));
  CHECK(linked.NamesAfter("__tvm_ffi_") == std::vector<std::string>{"parts"});
  CHECK(std::count(linked.undefined().begin(), linked.undefined().end(),
                   "TVMFFIErrorSetRaisedFromCStrParts") == 1);

  const ElfFile modules = *ElfFile::Parse(Own(Content("modules")));
  CHECK(modules.SymbolBytes("__tvm_ffi__library_bin")->size() == 96);
  CHECK(MessageOf(modules.SymbolBytes("nothing")) == "it has no symbol 'nothing'");
}

TEST_CASE("what is no shared library of this machine is refused by name") {
  const auto error = [](std::vector<std::byte> bytes) {
    return MessageOf(ElfFile::Parse(Own(std::move(bytes))));
  };
  CHECK(error({}) == "not a shared library: it does not begin as an ELF file does; link one with -shared");
  CHECK(error(std::vector<std::byte>(4096, std::byte{'x'})) ==
        "not a shared library: it does not begin as an ELF file does; link one with -shared");

  std::vector<std::byte> bytes = Content("plain");
  bytes.resize(20);
  CHECK(error(bytes) == "damaged shared library: it ends inside the ELF header");
  bytes = Content("plain");
  bytes[offsetof(Elf64_Ehdr, e_type)] = std::byte{ET_EXEC};
  CHECK(error(bytes) == "an ELF file of type 2, expected a shared library (type 3); link it with -shared");
  bytes = Content("plain");
  bytes[EI_CLASS] = std::byte{ELFCLASS32};
  const std::string machine = std::to_string(std::to_integer<int>(bytes[offsetof(Elf64_Ehdr, e_machine)]));
  CHECK(error(bytes) == "built for another machine (ELF class 1, machine " + machine +
                            "), this process needs class 2, machine " + machine);
}

std::string ElfErrorOf(const ElfImage& image) { return MessageOf(ElfFile::Parse(image.Write())); }

TEST_CASE("every table of a library is held against the end of the file") {
  const std::string damaged = "damaged shared library: ";
  const auto with = [](auto&& change, ElfImage::Hash hash = ElfImage::Hash::kSystemV) {
    ElfImage image = ElfImage::Make({"alpha", "beta"}, hash);
    change(image);
    return ElfErrorOf(image);
  };
  const auto gnu = ElfImage::Hash::kGnu;
  CHECK(with([](ElfImage&) {}) == "no error");
  CHECK(with([](ElfImage&) {}, gnu) == "no error");

  CHECK(with([](ElfImage& i) { i.header.e_phoff = i.Write().view.size() + 1; }) ==
        damaged + "its program headers are outside the file");
  CHECK(with([](ElfImage& i) { i.header.e_phentsize = 55; }) ==
        damaged + "its program headers are outside the file");
  CHECK(with([](ElfImage& i) { i.header.e_phnum = 1000; }) ==
        damaged + "its program headers end outside the file");
  // The whole file is the segment: one byte more is one too many.
  CHECK(with([](ElfImage& i) { ++i.segments[0].p_filesz; }) == damaged + "segment 0 ends outside the file");
  CHECK(with([](ElfImage& i) { i.segments[1].p_filesz = i.Write().view.size(); }) ==
        damaged + "segment 1 ends outside the file");
  CHECK(with([](ElfImage& i) { i.segments[0].p_offset = ~std::uint64_t{0}; }) ==
        damaged + "segment 0 ends outside the file");
  CHECK(with([](ElfImage& i) { i.segments[0].p_filesz -= 1; }) ==
        damaged + "its string table ends outside the file");
  CHECK(with([](ElfImage& i) { i.Entry(DT_STRSZ).d_un.d_val += 1; }) ==
        damaged + "its string table ends outside the file");
  CHECK(with([](ElfImage& i) { i.Entry(DT_SYMTAB).d_un.d_val = 0; }) ==
        "an ELF file without a dynamic symbol table, expected a shared library");
  CHECK(with([](ElfImage& i) { i.segments[1].p_filesz = 0; }) ==
        "an ELF file without a dynamic symbol table, expected a shared library");
  CHECK(with([](ElfImage& i) { i.hash[1] = 1000; }) == damaged + "its symbol table ends outside the file");
  CHECK(with([](ElfImage& i) { i.Entry(DT_HASH).d_un.d_val = i.Write().view.size() - 7; }) ==
        damaged + "its hash table is outside the file");
  CHECK(with([](ElfImage& i) { i.Entry(DT_HASH).d_tag = DT_DEBUG; }) ==
        damaged + "it has no hash table for its symbols");
  CHECK(with([](ElfImage& i) { i.hash[0] = 1 << 20; }, gnu) ==
        damaged + "its hash table ends outside the file");
  CHECK(with([](ElfImage& i) { i.hash[2] = ~0U; }, gnu) == damaged + "its hash table ends outside the file");
  CHECK(with([](ElfImage& i) { i.hash[6] = 1 << 20; }, gnu) ==
        damaged + "a chain of its hash table ends outside the file");
  CHECK(with([](ElfImage& i) { i.symbols[1].st_name = 100; }) ==
        damaged + "a name begins outside its string table");
}

TEST_CASE("the data of a symbol ends inside its segment") {
  ElfImage image = ElfImage::Make({"alpha"});
  const std::size_t size = image.Write().view.size();
  image.symbols[1].st_value = size - 8;
  CHECK(ElfFile::Parse(image.Write())->SymbolBytes("alpha")->size() == 8);
  image.symbols[1].st_value = size - 7;
  const std::string outside = "damaged shared library: its data 'alpha' ends outside the file";
  CHECK(MessageOf(ElfFile::Parse(image.Write())->SymbolBytes("alpha")) == outside);
  image.symbols[1].st_value = ~std::uint64_t{0};
  CHECK(MessageOf(ElfFile::Parse(image.Write())->SymbolBytes("alpha")) == outside);
  // A name is found as a whole, not as the beginning or the end of another.
  const ElfFile two = *ElfFile::Parse(ElfImage::Make({"alphabet", "bet"}).Write());
  CHECK(MessageOf(two.SymbolBytes("alpha")) == "it has no symbol 'alpha'");
  CHECK(two.SymbolBytes("bet"));
}

TEST_CASE("a string table without an end is refused, and names cost no more than the file is long") {
  ElfImage open = ElfImage::Make({"alpha"});
  open.strings.back() = 'a';
  CHECK(ElfErrorOf(open) == "damaged shared library: the last name of its string table has no end");

  // Every symbol names another end of one long name: without a limit the names take the product of both.
  ElfImage nested = ElfImage::Make({std::string(100000, 'a'), "b", "c"});
  for (std::uint32_t i = 2; i < 4; ++i) nested.symbols[i].st_name = nested.symbols[1].st_name + i;
  CHECK(ElfErrorOf(nested) == "damaged shared library: its names together are longer than the file");
}

TEST_CASE("a library cut anywhere or with changed bytes is read or refused, never past its end") {
  for (const char* name : {"plain", "contexts", "modules"}) {
    const std::vector<std::byte> good = Content(name);
    // Headers and dynamic tables are in front; behind them larger steps do.
    for (std::size_t size = 0; size < good.size(); size += size < 4096 ? 1 : 61) {
      const auto elf = ElfFile::Parse(Own({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}));
      if (elf) Touch(*elf);
    }
    std::mt19937 random(1);
    int read = 0;
    for (int i = 0; i < 3000; ++i) {
      std::vector<std::byte> bytes = good;
      for (int changes = 1 + i % 3; changes > 0; --changes) {
        // Mostly where the tables are.
        const std::size_t range = i % 4 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 3000);
        bytes[random() % range] = static_cast<std::byte>(random());
      }
      const auto elf = ElfFile::Parse(Own(std::move(bytes)));
      if (!elf) continue;
      ++read;
      Touch(*elf);
    }
    CHECK(read > 300);
  }
}

}  // namespace
}  // namespace rewire
