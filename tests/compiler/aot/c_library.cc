// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/aot/c_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "rewire/tests/support/paths.h"
#include "rewire/vm/heap/object_heap.h"

namespace rewire::test {

std::string RunShell(const TempFolder& folder, const std::string& command) {
  const std::string out = (folder.path() / "printed").string();
  const int status =
      std::system(("cd '" + folder.path().string() + "' && " + command + " > printed 2>&1").c_str());
  std::string printed = ReadWholeFile(out);
  INFO(command);
  INFO(printed.substr(0, 4000));
  REQUIRE(status == 0);
  return printed;
}

namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The words that give the linker the objects of `sources`. Several tests link the same ones, so these are
// compiled once for each set of flags.
std::string ObjectsOf(const std::string& sources, const std::string& flags) {
  static std::map<std::string, std::unique_ptr<TempFolder>> compiled;
  const std::string command = REWIRE_TEST_CC " -std=c11 -O0 -fPIC -c " + sources + flags;
  if (compiled.count(command) == 0) {
    auto folder = std::make_unique<TempFolder>();
    RunShell(*folder, command);
    compiled[command] = std::move(folder);
  }
  return "'" + compiled[command]->path().string() + "'/*.o";
}

constexpr std::size_t kMargin = 64;
constexpr std::byte kPoison{kPoisonByte};

// Memory between two margins that must keep their bytes.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : bytes_(bytes), memory_(bytes + 3 * kMargin, kPoison) {}
  std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + kMargin + (kMargin - address % kMargin);
  }
  bool IsWithin() {
    const std::byte* const begin = data();
    const auto is_poison = [](std::byte byte) { return byte == kPoison; };
    return std::all_of<const std::byte*>(memory_.data(), begin, is_poison) &&
           std::all_of<const std::byte*>(begin + bytes_, memory_.data() + memory_.size(), is_poison);
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
};

}  // namespace

CLibrary::~CLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void CLibrary::Add(const std::string& prefix, const CSource& source) {
  folder_.Write(prefix + ".h", source.header);
  folder_.Write(prefix + ".c", source.source);
  all_ += "#include \"" + prefix + ".c\"\n";
}

void CLibrary::Compile(const std::string& flags, const std::string& sources, const std::string& c_flags) {
  folder_.Write("all.c", all_);
  folder_.Write("all.cc", all_);
  const std::string include =
      " -I '" + std::string(SourceDir()) + "/include' -Wall -Wextra -Wconversion -Werror " + flags;
  const std::string host = std::string(SourceDir()) + "/compiler/aot/packed_host.c";
  RunShell(folder_, REWIRE_TEST_CC " -std=c99 -O0 -fPIC -c all.c -o all.o" + include + " " + c_flags);
  // The C compiler writes the files that c_flags ask for beside the objects, so those sources are compiled
  // here.
  const std::string linked = sources.empty() || !c_flags.empty() ? sources : ObjectsOf(sources, include);
  RunShell(folder_, REWIRE_TEST_CC " -std=c11 -O0 -fPIC -shared all.o '" + host + "' " + linked +
                        " -o all.so -lm" + include + " " + c_flags);
  RunShell(folder_, REWIRE_TEST_CXX " -std=c++17 -fsyntax-only all.cc" + include);
  if (std::string(REWIRE_TEST_CLANG) != "") {
    RunShell(folder_, REWIRE_TEST_CLANG " -std=c99 -fsyntax-only all.c" + include);
  }
  handle_ = dlopen((folder_.path() / "all.so").c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle_ == nullptr) FAIL(dlerror());
}

const void* CLibrary::FindSymbol(const std::string& symbol) const {
  void* found = dlsym(handle_, symbol.c_str());
  INFO(symbol);
  REQUIRE(found != nullptr);
  return found;
}

std::vector<std::string> CLibrary::Undefined() const {
  return Lines(RunShell(folder_, "nm -u --format=just-symbols all.o"));
}

std::vector<std::string> CLibrary::Defined() const {
  return Lines(RunShell(folder_, "nm -g --defined-only --format=just-symbols all.o"));
}

std::map<std::string, std::string> CLibrary::CallGraphs() const {
  std::map<std::string, std::string> graphs;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path().extension() == ".ci")
      graphs[entry.path().filename().string()] = ReadWholeFile(entry.path());
  }
  return graphs;
}

std::string CLibrary::Sections() const { return RunShell(folder_, "objdump -h all.o"); }

CResult CallC(const RewireAotFunctionInfo& function, void* kernels, const std::vector<const void*>& inputs,
              const void* weights, const std::int64_t* sizes) {
  Guarded arena(function.arena_bytes);
  std::vector<Guarded> memory;
  for (std::int32_t i = 0; i < function.output_count; ++i) memory.emplace_back(function.outputs[i].bytes);
  std::vector<void*> outputs;
  for (Guarded& output : memory) outputs.push_back(output.data());
  CResult result;
  result.code = function.run(kernels, arena.data(), weights, sizes, inputs.data(), outputs.data());
  result.is_within = arena.IsWithin();
  for (std::int32_t i = 0; i < function.output_count; ++i) {
    Guarded& output = memory[static_cast<std::size_t>(i)];
    result.is_within = result.is_within && output.IsWithin();
    result.outputs.emplace_back(output.data(), output.data() + function.outputs[i].bytes);
  }
  return result;
}

}  // namespace rewire::test
