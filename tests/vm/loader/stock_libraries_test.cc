// SPDX-License-Identifier: Apache-2.0
// The process loads the libraries of the stock kernels that its programs name, and no library that an
// executable names by itself.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

using test::MessageOf;

// Whether a file of this name is mapped into the process.
bool IsLoaded(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("/" + name)) return true;
  }
  return false;
}

Result<Program> Linked(const std::string& kernel) {
  Result<Module> module = Assemble(".kernel k = \"" + kernel +
                                   "\"\n.func main(x: f32[4]) -> f32[4]\n"
                                   "  %s = alloc_storage _, alignment=64, f32[4], cpu\n"
                                   "  %a = alloc_tensor %s, _, f32[4]\n"
                                   "  invoke_packed k(%x, %a), outputs=1\n  ret %a\n.end\n");
  if (!module) return Forward(module);
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return Forward(executable);
  return Program::Link(*executable);
}

TEST_CASE("a library of stock kernels is loaded for programs that name one of its kernels") {
  const Result<Program> tanh = Linked("rewire.tanh");
  if (!tanh && tanh.error().code() == StatusCode::kNotFound) {
    WARN("skipped: this build has no stock kernels that are loaded: " + tanh.error().message());
    return;
  }
  CHECK(MessageOf(tanh) == "no error");
  CHECK(IsLoaded("librewire_kernels_cpu.so"));
  const std::string beginnings[] = {"image", "onednn", "re2"};
  for (const std::string& each : beginnings) CHECK_FALSE(IsLoaded("librewire_kernels_" + each + ".so"));
  // A program that names one is answered by that library, or told that this build lacks it.
  for (const std::string& each : beginnings) {
    CHECK_THAT(MessageOf(Linked("rewire." + each + ".no_such_kernel")),
               Catch::Contains("librewire_kernels_" + each + ".so"));
  }
  CHECK_FALSE(IsLoaded("librewire_collective_mpi.so"));
  CHECK_THAT(MessageOf(Linked("rewire.collective.no_such_kernel")),
             Catch::Contains("librewire_collective_mpi.so"));
}

TEST_CASE("an executable that names a library by its path has it not loaded") {
  const test::TempFolder folder;
  const std::string path = folder.path() / "named_by_a_file.so";
  std::filesystem::copy_file(test::TestLibrary("plain"), path);
  for (const std::string& name : {path, std::string("named_by_a_file"), path + ":plain.add"}) {
    CAPTURE(name);
    CHECK_THAT(MessageOf(Linked(name)),
               Catch::Contains("kernel '" + name + "': no kernels have been added to search"));
    CHECK_FALSE(IsLoaded("named_by_a_file.so"));
  }
}

}  // namespace
}  // namespace rewire
