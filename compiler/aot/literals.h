// SPDX-License-Identifier: Apache-2.0
//
// Literals: the constants of the source, those of the module and integers that were found while it was made.
// Only those that the source names are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::aot {

class Literals {
 public:
  Literals(const Module& module, std::string prefix) : module_(module), prefix_(std::move(prefix)) {}

  // The bytes of a constant. Errors: kUnsupported where its value is not in the file.
  Result<const std::vector<std::byte>*> BytesOf(std::uint32_t constant);
  // The place of these integers in the table of literals.
  std::uint32_t Add(DLDataType dtype, const std::vector<std::int64_t>& elements);
  const std::vector<std::int64_t>& ElementsAt(std::uint32_t literal) const {
    return literals_[literal].elements;
  }

  // The name in the source, which is then written.
  std::string UseConstant(std::uint32_t constant);
  std::string UseLiteral(std::uint32_t literal);

  // Definitions of all that is used.
  std::string Text() const;
  std::uint64_t used_bytes() const;

 private:
  struct Literal {
    DLDataType dtype;
    std::vector<std::int64_t> elements;
    bool is_used = false;
  };

  const Module& module_;
  std::string prefix_;
  std::map<std::uint32_t, std::vector<std::byte>> decoded_{};
  std::map<std::uint32_t, bool> used_{};
  std::vector<Literal> literals_{};
};

// The C type of an element, such as "float"; where C has none, that of its bytes.
std::string ElementType(DLDataType dtype);

}  // namespace rewire::aot
