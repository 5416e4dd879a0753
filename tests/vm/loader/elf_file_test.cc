// SPDX-License-Identifier: Apache-2.0
#include "vm/loader/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>

#include "base/mapped_file.h"
#include "tests/vm/loader/run_kernel.h"
#include "vm/loader/library_abi.h"

namespace rewire {
namespace {

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
  CHECK(modules.SymbolBytes("__tvm_ffi__library_bin")->size() == 95);
  CHECK(MessageOf(modules.SymbolBytes("nothing")) == "it has no symbol 'nothing'");
}

TEST_CASE("what is no shared library of this machine is refused by name") {
  const auto error = [](std::vector<std::byte> bytes) {
    return MessageOf(ElfFile::Parse(Own(std::move(bytes))));
  };
  CHECK(error({}) == "not a shared library: it does not begin as an ELF file does");
  CHECK(error(std::vector<std::byte>(4096, std::byte{'x'})) ==
        "not a shared library: it does not begin as an ELF file does");

  std::vector<std::byte> bytes = Content("plain");
  bytes.resize(20);
  CHECK(error(bytes) == "damaged shared library: it ends inside the ELF header");
  bytes = Content("plain");
  bytes[offsetof(Elf64_Ehdr, e_type)] = std::byte{ET_EXEC};
  CHECK(error(bytes) == "an ELF file of type 2, expected a shared library (type 3); link it with -shared");
  bytes = Content("plain");
  bytes[EI_CLASS] = std::byte{ELFCLASS32};
  CHECK(error(bytes).rfind("built for another machine (ELF class 1, machine ", 0) == 0);
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
