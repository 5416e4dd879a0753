// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/library_bin.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "rewire/tests/vm/loader/bytes_builder.h"
#include "rewire/tests/vm/loader/run_kernel.h"

namespace rewire {
namespace {

using test::MessageOf;

using Bin = test::BytesBuilder;

// Two modules: the root and one that it imports.
std::vector<std::byte> Example() {
  Bin bin;
  bin.U64(3).U64(0).U64(1).U64(1).U64(1).U64(1).Text("_lib").Text("cuda").Text("code");
  return bin.Sized();
}

std::string BinErrorOf(const Bin& bin) { return MessageOf(ParseLibraryBin(bin.Sized())); }

TEST_CASE("modules of a library_bin are read with their kinds and content") {
  const std::vector<std::byte> bytes = Example();
  const auto modules = ParseLibraryBin(bytes);
  REQUIRE(modules);
  REQUIRE(modules->size() == 2);
  CHECK((*modules)[0].kind == "_lib");
  CHECK((*modules)[0].content.empty());
  CHECK((*modules)[1].kind == "cuda");
  REQUIRE((*modules)[1].content.size() == 4);
  CHECK(std::memcmp((*modules)[1].content.data(), "code", 4) == 0);
}

TEST_CASE("a library_bin cut at any byte is refused") {
  std::vector<std::byte> bytes = Example();
  while (!bytes.empty()) {
    bytes.pop_back();
    CHECK_FALSE(ParseLibraryBin(bytes));
  }
}

TEST_CASE("what is wrong with a library_bin is named") {
  const std::string damaged = "damaged __tvm_ffi__library_bin: ";
  CHECK(MessageOf(ParseLibraryBin({})) == damaged + "it says 0 bytes, its symbol has 0");
  CHECK(BinErrorOf(Bin().U64(std::uint64_t{1} << 61)) == damaged + "its import tree ends outside it");
  CHECK(BinErrorOf(Bin().U64(1).U64(0).U64(0)) == damaged + "its import tree does not cover its modules");
  CHECK(BinErrorOf(Bin().U64(2).U64(0).U64(2).U64(1).U64(0)) ==
        damaged + "its import tree does not cover its modules");
  CHECK(BinErrorOf(Bin().U64(3).U64(0).U64(2).U64(1).U64(1).U64(0)) ==
        damaged + "the imports of module 1 run backwards");
  CHECK(BinErrorOf(Bin().U64(2).U64(0).U64(1).U64(1).U64(9)) == damaged + "module 9 is imported, it has 1");
  CHECK(BinErrorOf(Bin().U64(2).U64(0).U64(0).U64(0).U64(99)) == damaged + "module 0 ends outside it");
}

}  // namespace
}  // namespace rewire
