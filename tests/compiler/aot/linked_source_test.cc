// SPDX-License-Identifier: Apache-2.0
// Executables as sources of constant data (vm-aot --bytecode): compilers take them, programs do what those of
// files do, and what does not fit neither compiles nor links.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "rewire/compiler/aot/linked_source.h"
#include "rewire/executable_format/linked/linked_image.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/executable_format/linked/linked_copy.h"
#include "rewire/tests/programs/program_file.h"
#include "rewire/tests/programs/test_kernels.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

std::string Flags() {
  return " -I '" + std::string(SourceDir()) + "/include' -Wall -Wextra -Wpedantic -Werror ";
}

void Write(const TempFolder& folder, const std::string& prefix, const Executable& executable) {
  const Result<LinkedSource> source = EmitLinked(executable, prefix, prefix + ".h");
  if (!source) FAIL(source.error().message());
  folder.Write(prefix + ".h", source->header);
  folder.Write(prefix + ".c", source->source);
}

// In place of librewire.a. The test's own symbol is hidden from libraries that it loads.
void WriteVersion(const TempFolder& folder) {
  const std::string symbol = LinkedVersionSymbol();
  folder.Write("version.c", "extern const char " + symbol + ";\nconst char " + symbol + " = 0;\n");
}

Program LinkWithTestKernels(const Executable& executable) {
  LinkOptions options;
  options.kernels = TestKernels();
  options.stock_kernels = false;
  options.storage_fill = StorageFill::kPoison;
  Result<Program> program = Program::Link(executable, options);
  if (!program) FAIL(program.error().message());
  return *program;
}

// Returns "ok", or the code and the message of a run.
std::string Outcome(const Program& program, const ProgramCase& c) {
  VirtualMachine vm(program, c.limits);
  const Status status = vm.TryInvoke(c.function);
  if (status) return "ok";
  return std::string(StatusCodeName(status.error().code())) + ": " + status.error().message();
}

TEST_CASE("text programs that are linked in do and say what they do from a file") {
  const Result<std::vector<ProgramFile>> files = ReadProgramFiles();
  REQUIRE(files);
  const TempFolder folder;
  WriteVersion(folder);
  std::string all;
  std::vector<Executable> executables;
  for (const ProgramFile& file : *files) {
    const std::string prefix = "p" + std::to_string(executables.size());
    const Result<Executable> executable = Executable::FromModule(file.module);
    REQUIRE(executable);
    executables.push_back(*executable);
    Write(folder, prefix, *executable);
    all += "#include \"" + prefix + ".c\"\n";
  }
  folder.Write("all.c", all);
  folder.Write("all.cc", all);
  RunShell(folder, REWIRE_TEST_CC " -std=c99 -O0 -fPIC -shared all.c version.c -o all.so" + Flags());
  RunShell(folder, REWIRE_TEST_CXX " -std=c++17 -fsyntax-only all.cc" + Flags());
  if (std::string(REWIRE_TEST_CLANG) != "") {
    RunShell(folder, REWIRE_TEST_CLANG " -std=c99 -fsyntax-only all.c" + Flags());
    RunShell(folder, REWIRE_TEST_CLANG " -std=c++17 -x c++ -fsyntax-only all.cc" + Flags());
  }
  const auto close = [](void* library) { dlclose(library); };
  const std::unique_ptr<void, decltype(close)> library(
      dlopen((folder.path() / "all.so").c_str(), RTLD_NOW | RTLD_LOCAL), close);
  if (library == nullptr) FAIL(dlerror());

  std::size_t compared = 0;
  for (std::size_t i = 0; i < files->size(); ++i) {
    const ProgramFile& file = (*files)[i];
    CAPTURE(file.name);
    const std::string name = "p" + std::to_string(i) + "_executable";
    const auto* found = static_cast<const RewireLinkedExecutable*>(dlsym(library.get(), name.c_str()));
    REQUIRE(found != nullptr);
    RewireLinkedExecutable linked = *found;
    linked.version = LinkedVersion();
    const Result<Executable> opened = OpenLinked(linked);
    REQUIRE(opened);
    const Program from_file = LinkWithTestKernels(executables[i]);
    const Program from_source = LinkWithTestKernels(*opened);
    for (const ProgramCase& c : file.cases) {
      CAPTURE(c.function);
      CHECK(Outcome(from_source, c) == Outcome(from_file, c));
      ++compared;
    }
  }
  CHECK(compared > 150);
}

TEST_CASE("the digits model that is linked in gives the bytes of its file, for every number of images") {
  const Result<Module> module = AssembleFile(std::string(SourceDir()) + "/examples/digits/digits.asm");
  REQUIRE(module);
  const Result<Executable> executable = Executable::FromModule(*module);
  REQUIRE(executable);
  const LinkedCopy copy(*executable);
  LinkOptions options;
  REQUIRE(options.kernels.AddLibrary(std::string(BuildDir()) + "/lib/rewire/librewire_kernels_cpu.so"));
  const Program from_file = Program::Link(*executable, options).value();
  const Program from_source = Program::Link(copy.Open(), options).value();
  for (const std::int64_t n : {1, 7, 32}) {
    std::vector<float> images(static_cast<std::size_t>(n) * 64);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * 37 % 101) / 100;
    const Value input(Tensor::CopyOf(TensorView(images.data(), {n, 1, 8, 8})).value());
    std::vector<std::string> given;
    for (const Program& program : {from_file, from_source}) {
      const Value scores = program.TryRun("", {&input, 1}).value();
      const TensorView view = scores.tensor().view();
      given.emplace_back(static_cast<const char*>(view.data()), view.bytes());
    }
    CHECK(given[0].size() == static_cast<std::size_t>(n) * 40);
    CHECK(given[0] == given[1]);
  }
}

TEST_CASE("a source that does not fit neither compiles nor links") {
  const Result<Module> module = Assemble(R"(
.const w: f32[3] = {1, -2.5, 3}
.func main() -> f32[3]
  %w = load_const w
  ret %w
.end)");
  REQUIRE(module);
  const Result<Executable> executable = Executable::FromModule(*module);
  REQUIRE(executable);
  const TempFolder folder;
  Write(folder, "m", *executable);
  WriteVersion(folder);
  const std::string sound = ReadWholeFile(folder.path() / "m.c");
  const std::string compile = REWIRE_TEST_CC " -std=c99 -fPIC -shared -Wl,-z,defs -o m.so m.c" + Flags();
  RunShell(folder, compile + "version.c");

  // A word of the tables, or of the constants, that is gone, and one that is new.
  for (const char* array : {"m_tables[]", "m_data[]"}) {
    const std::size_t from = sound.find("0x", sound.find(array));
    const std::size_t length = sound.find(',', from) + 1 - from;
    std::string less = sound;
    folder.Write("m.c", less.erase(from, length));
    CHECK_THAT(RunShell(folder, "! " + compile + "version.c"), Catch::Contains("is_whole"));
    std::string more = sound;
    folder.Write("m.c", more.insert(from, "0x0, "));
    CHECK_THAT(RunShell(folder, "! " + compile + "version.c"), Catch::Contains("is_whole"));
  }

  const std::string layout = "REWIRE_LINKED_LAYOUT != 1";
  std::string older = sound;
  REQUIRE(older.find(layout) != std::string::npos);
  folder.Write("m.c", older.replace(older.find(layout), layout.size(), "REWIRE_LINKED_LAYOUT != 0"));
  CHECK_THAT(RunShell(folder, "! " + compile + "version.c"),
             Catch::Contains("this file was made by another version of vm-aot"));

  folder.Write("m.c", sound);
  CHECK_THAT(RunShell(folder, "! " + compile),
             Catch::Contains("undefined reference to `" + std::string(LinkedVersionSymbol())));

  CHECK(EmitLinked(*executable, "a-b", "m.h").status().code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace rewire::test
