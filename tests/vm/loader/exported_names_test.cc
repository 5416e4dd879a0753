// SPDX-License-Identifier: Apache-2.0
// The names that librewire exports (base/export.h).
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/mapped_file.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/loader/elf_file.h"

namespace rewire {
namespace {

TEST_CASE("librewire exports what is marked, under its own names alone") {
  const std::string path = std::string(test::BuildDir()) + "/lib/librewire.so";
  Result<SharedBytes> file = ReadFile(path);
  if (!file) return;  // it is an archive here
  const Result<ElfFile> library = ElfFile::Parse(*std::move(file));
  REQUIRE(library);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
  // Sanitized libraries also export instances of the standard library's templates.
  std::vector<std::string> foreign;
  for (const std::string_view name : library->functions()) {
    if (name.rfind("rewire_", 0) != 0 && name.find("6rewire") == std::string_view::npos)
      foreign.emplace_back(name);
  }
  CHECK(foreign.empty());
#endif
  CHECK(library->Defines("rewire_vm_invoke"));
  // A class and a namespace of its own files alone.
  for (const std::string_view name : library->functions()) {
    INFO(name);
    CHECK(name.find("6rewire11Interpreter") == std::string_view::npos);
    CHECK(name.find("6rewire7Machine") == std::string_view::npos);
  }
}

}  // namespace
}  // namespace rewire
