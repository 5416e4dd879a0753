// SPDX-License-Identifier: Apache-2.0
// C source of EmitC, compiled and loaded into the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/compiler/aot/emit_c.h"
#include "rewire/compiler/aot/function_info.h"
#include "rewire/compiler/aot/packed_host.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {

// A CResult is what a call of a compiled function gave.
struct CResult {
  int code = 0;
  std::vector<std::vector<std::byte>> outputs;
  bool is_within = true;  // nothing was written beside the arena and the outputs
};

// Runs a command of the shell in a folder and returns what it prints; fails the test if the command fails.
std::string RunShell(const TempFolder& folder, const std::string& command);

// Many sources, compiled as few files.
class CLibrary {
 public:
  CLibrary() = default;
  ~CLibrary();
  CLibrary(const CLibrary&) = delete;
  CLibrary& operator=(const CLibrary&) = delete;

  void Add(const std::string& prefix, const CSource& source);
  // Compiles with all warnings as errors, as C99 and C++; fails the test if a compiler has something to say.
  // `c_flags` are for the C compiler alone.
  void Compile(const std::string& flags = {}, const std::string& sources = {},
               const std::string& c_flags = {});
  template <typename T>
  const T* Find(const std::string& symbol) const {
    return static_cast<const T*>(FindSymbol(symbol));
  }
  template <typename F>
  F* Function(const std::string& symbol) const {
    return reinterpret_cast<F*>(const_cast<void*>(FindSymbol(symbol)));
  }
  // The names that the object file takes from elsewhere, and those that it gives.
  std::vector<std::string> Undefined() const;
  std::vector<std::string> Defined() const;
  // The compiler's files about calls, by name, if the flags ask for them.
  std::map<std::string, std::string> CallGraphs() const;
  // The names of its sections, among other text.
  std::string Sections() const;

 private:
  const void* FindSymbol(const std::string& symbol) const;

  TempFolder folder_;
  std::string all_;
  void* handle_ = nullptr;
};

// Calls with poisoned memory.
CResult CallC(const RewireAotFunctionInfo& function, void* kernels, const std::vector<const void*>& inputs,
              const void* weights = nullptr, const std::int64_t* sizes = nullptr);

}  // namespace rewire::test
