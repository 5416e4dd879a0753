// SPDX-License-Identifier: Apache-2.0
// What a shared library says about itself before its code runs: names it needs, symbols it defines and wants,
// the bytes of its data. Reads 64-bit little-endian ELF (System V gABI); every offset in the file is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/array.h"
#include "base/shared_bytes.h"
#include "base/span.h"
#include "base/status.h"

namespace rewire {

class ElfFile {
 public:
  // kInvalidFile when the bytes are no shared library for this machine, or damaged.
  static Result<ElfFile> Parse(SharedBytes file);

  const std::string& soname() const { return soname_; }
  const Array<std::string>& needed() const { return needed_; }  // libraries, as named in the file
  // Global symbols, sorted; of the undefined ones those that must be found. Views into the file.
  const Array<std::string_view>& defined() const { return defined_; }
  const Array<std::string_view>& functions() const { return functions_; }  // of the defined ones
  const Array<std::string_view>& undefined() const { return undefined_; }

  bool Defines(std::string_view name) const;
  bool DefinesPrefix(std::string_view prefix) const;
  // The defined names that start with `prefix`, without it.
  Array<std::string> NamesAfter(std::string_view prefix) const;

  // Whether the text stands anywhere in the file.
  bool HasText(std::string_view text) const;

  // The initial bytes of a data symbol. kNotFound; kInvalidFile when they are not in the file.
  Result<Span<const std::byte>> SymbolBytes(std::string_view name) const;

 private:
  struct Segment {
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;  // bytes in the file
  };
  // Dynamic entries that are used; addresses and sizes, 0 when absent.
  struct Dynamic {
    std::uint64_t strings = 0, strings_size = 0, symbols = 0, hash = 0, gnu_hash = 0;
    std::uint64_t soname = 0;
    Array<std::uint64_t> needed;
  };

  ElfFile() = default;
  Span<const std::byte> At(std::uint64_t address) const;
  std::string_view StringAt(std::uint64_t offset) const;
  Status ReadHeaders(Dynamic* dynamic);
  Result<std::uint64_t> CountSymbols(const Dynamic& dynamic) const;
  Status ReadSymbols(const Dynamic& dynamic);

  SharedBytes file_;
  Array<Segment> segments_;
  Span<const std::byte> strings_;
  Span<const std::byte> symbols_;
  std::string soname_;
  Array<std::string> needed_;
  Array<std::string_view> defined_;
  Array<std::string_view> functions_;
  Array<std::string_view> undefined_;
};

}  // namespace rewire
