// SPDX-License-Identifier: Apache-2.0
//
// Reads what a shared library declares before its code runs: the libraries that it needs, the symbols that it
// defines and requires, and the bytes of its data. Supports 64-bit little-endian ELF (System V gABI). Every
// offset in the file is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

class ElfFile {
 public:
  // Errors: kInvalidFile if the bytes are no shared library for this machine, or are damaged.
  static Result<ElfFile> Parse(SharedBytes file);

  const std::string& soname() const { return soname_; }
  const Array<std::string>& needed() const { return needed_; }  // needed libraries, as the file names them
  // Global symbols, sorted. Of the undefined ones, only those that must be found. Views into the file.
  const Array<std::string_view>& defined() const { return defined_; }
  const Array<std::string_view>& functions() const { return functions_; }  // of the defined ones
  const Array<std::string_view>& undefined() const { return undefined_; }

  bool Defines(std::string_view name) const;
  bool DefinesPrefix(std::string_view prefix) const;
  // The defined names that start with `prefix`, without it.
  Array<std::string> NamesAfter(std::string_view prefix) const;

  // True if the text occurs anywhere in the file.
  bool HasText(std::string_view text) const;

  // The initial bytes of a data symbol. Errors: kNotFound; kInvalidFile if they are not in the file.
  Result<Span<const std::byte>> SymbolBytes(std::string_view name) const;

 private:
  struct Segment {
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;  // bytes in the file
  };
  // The dynamic entries that are used: addresses and sizes, 0 if absent.
  struct Dynamic {
    std::uint64_t strings = 0, strings_size = 0, symbols = 0, hash = 0, gnu_hash = 0;
    std::uint64_t soname = 0;
    Array<std::uint64_t> needed;
  };

  ElfFile() = default;
  Span<const std::byte> At(std::uint64_t address) const;
  // Returns the name at an offset of the string table.
  Result<std::string_view> ReadName(std::uint64_t offset);
  bool IsNamed(std::uint64_t offset, std::string_view name) const;
  Status ReadHeaders(Dynamic* dynamic);
  Result<std::uint64_t> CountSymbols(const Dynamic& dynamic) const;
  Status ReadSymbols(const Dynamic& dynamic);

  SharedBytes file_;
  Array<Segment> segments_;
  Span<const std::byte> strings_;
  Span<const std::byte> symbols_;
  // How many bytes of names may still be read. Names may overlap, so many long names fit into a small table.
  // All names together may be as long as the file, which keeps the work in proportion to it.
  std::size_t name_bytes_left_ = 0;
  std::string soname_;
  Array<std::string> needed_;
  Array<std::string_view> defined_;
  Array<std::string_view> functions_;
  Array<std::string_view> undefined_;
};

}  // namespace rewire
