// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_functions.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/kernel_set.h"

namespace rewire {
namespace {

using test::TestLibrary;

// An empty folder in place of the one that has Rewire's libraries.
class OtherLibraries {
 public:
  OtherLibraries() {
    std::string name = (std::filesystem::temp_directory_path() / "rewire-XXXXXX").string();
    path_ = mkdtemp(name.data());
    setenv("REWIRE_LIBRARY_PATH", path_.c_str(), 1);
  }
  ~OtherLibraries() {
    setenv("REWIRE_LIBRARY_PATH", before_.c_str(), 1);
    std::filesystem::remove_all(path_);
  }
  std::string File() const { return path_ + "/" + tvm_runtime::kLibrary; }

 private:
  std::string before_ = std::getenv("REWIRE_LIBRARY_PATH");
  std::string path_;
};

Error RefusalOf(const char* library) {
  KernelSet kernels;
  const Status status = kernels.AddLibrary(TestLibrary(library));
  return status ? Error(StatusCode::kOk, "loaded") : status.error();
}

TEST_CASE("a library that calls TVM's runtime needs Rewire's library of it, and no other library does") {
  // The runtime of tvm-ffi, which both need, is opened once in a process.
  REQUIRE(RefusalOf("unmarked").message() == "loaded");
  const OtherLibraries none;
  const Error refusal = RefusalOf("classic");
  CHECK(refusal.code() == StatusCode::kNotFound);
  CHECK(
      refusal.message() ==
      std::string("kernel library '") + TestLibrary("classic") +
          "': it calls functions of TVM's runtime ('tvm.contrib....'), and Rewire's library of them was not "
          "found; tried " +
          none.File() + ", " + test::BuildDir() + "/tests/bin/rewire/" + tvm_runtime::kLibrary + ", " +
          test::BuildDir() + "/tests/bin/../lib/rewire/" + tvm_runtime::kLibrary +
          "; set REWIRE_LIBRARY_PATH to the directory that has it");
  CHECK(RefusalOf("unmarked").message() == "loaded");
}

TEST_CASE("a file that is not Rewire's library of TVM's runtime functions is refused") {
  const OtherLibraries other;
  std::filesystem::create_symlink(TestLibrary("plain"), other.File());
  const Result<Span<const tvm_runtime::Function>> functions = TvmFunctions();
  REQUIRE_FALSE(functions);
  CHECK(functions.error().code() == StatusCode::kIo);
  CHECK_THAT(functions.error().message(),
             Catch::StartsWith("functions of TVM's runtime: ") && Catch::Contains("rewire_tvm_runtime_bind"));
}

TEST_CASE("the functions of TVM's runtime are opened once") {
  const Result<Span<const tvm_runtime::Function>> first = TvmFunctions();
  const Result<Span<const tvm_runtime::Function>> second = TvmFunctions();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->data() == second->data());
  CHECK(first->size() == second->size());
}

}  // namespace
}  // namespace rewire
