// SPDX-License-Identifier: Apache-2.0
// C source of EmitC, compiled and loaded into the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/compiler/aot/emit_c.h"
#include "rewire/compiler/aot/packed_host.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {

// The rows of a source's table, as its header declares them.
struct CTensorInfo {
  const char* name;
  const char* dtype;
  std::int32_t rank;
  const std::int64_t* dims;
  std::uint64_t bytes;
};
struct CSizeInfo {
  const char* name;
  std::int64_t most;
};
struct CFunctionInfo {
  const char* name;
  std::uint64_t arena_bytes;
  const CTensorInfo* inputs;
  std::int32_t input_count;
  const CTensorInfo* outputs;
  std::int32_t output_count;
  const CSizeInfo* sizes;
  std::int32_t size_count;
  int (*output_dims)(const std::int64_t* sizes, std::int32_t output, std::int64_t* dims);
  int (*run)(void* kernels, void* memory, const void* weights, const std::int64_t* sizes,
             const void* const* inputs, void* const* outputs);
};

// A CResult is what a call of a compiled function gave.
struct CResult {
  int code = 0;
  std::vector<std::vector<std::byte>> outputs;
  bool is_within = true;  // nothing was written beside the arena and the outputs
};

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
CResult CallC(const CFunctionInfo& function, void* kernels, const std::vector<const void*>& inputs,
              const void* weights = nullptr, const std::int64_t* sizes = nullptr);

}  // namespace rewire::test
