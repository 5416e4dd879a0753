// SPDX-License-Identifier: Apache-2.0
// LinkedArchive fills records in from the tables of an executable that is linked in. It is an ArchiveReader
// (archive.h) that looks at nothing: what it reads was verified when the program was built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/sections.h"

namespace rewire {

class LinkedArchive {
 public:
  static constexpr bool kReading = true;

  explicit LinkedArchive(const void* tables) : next_(static_cast<const std::byte*>(tables)) {}

  template <typename T>
  void Number(T& value) {
    Copy(&value, sizeof(T));
  }
  void Text(std::string& text) {
    const std::uint32_t size = Count();
    text.assign(reinterpret_cast<const char*>(next_), size);
    next_ += size;
  }
  template <typename T, typename Visit>
  void List(Array<T>& list, std::size_t /*smallest*/, Visit&& visit) {
    list = Array<T>(Count());
    for (T& element : list) visit(element);
  }
  template <typename T>
  void Numbers(Array<T>& numbers) {
    numbers = Array<T>(Count());
    if (!numbers.empty()) Copy(numbers.data(), numbers.size() * sizeof(T));
  }
  void Zeros(std::size_t count) { next_ += count; }

  // The records ask these of a reader of files. Nothing is wrong here, and nothing ends too early.
  void Reject(const char* /*reason*/) {}
  static constexpr std::size_t remaining() { return std::numeric_limits<std::size_t>::max(); }

 private:
  std::uint32_t Count() {
    std::uint32_t count = 0;
    Number(count);
    return count;
  }
  void Copy(void* to, std::size_t size) {
    std::memcpy(to, next_, size);
    next_ += size;
  }

  const std::byte* next_;
};

namespace sections {

// All records of an executable that is linked in, in one sequence. `A` is ArchiveWriter or LinkedArchive.
template <typename A>
void LinkedTables(A& a, Of<A, Module>& module, Array<std::uint64_t>& stored_sizes,
                  Array<std::uint32_t>& code_words) {
  Metadata(a, module);
  Devices(a, module);
  Texts(a, module.symbols);
  SymbolLimits(a, module);
  Texts(a, module.strings);
  Constants(a, module.constants, stored_sizes);
  Kernels(a, module);
  DeviceCode(a, module);
  Functions(a, module, code_words);
  for (auto& function : module.functions) a.Numbers(function.code);
  Notes(a, module);
}

}  // namespace sections
}  // namespace rewire
