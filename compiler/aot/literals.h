// SPDX-License-Identifier: Apache-2.0
//
// Literals: the constants of the source, those of the module and integers that were found while it was made.
// Only those that the source names are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/aot/emit_c.h"
#include "rewire/executable_format/module.h"

namespace rewire::aot {

class Literals {
 public:
  struct Decoded {
    std::vector<std::int64_t> dims;
    std::vector<std::byte> bytes;
  };

  Literals(const Module& module, const EmitCOptions& options) : module_(module), options_(options) {}

  // The shape and the bytes of a constant. Errors: kUnsupported if neither the file nor
  // EmitCOptions::constants has its value.
  Result<const Decoded*> Decode(std::uint32_t constant);
  // The place of these integers in the table of literals.
  // `dtype` is bool, i32 or i64.
  std::uint32_t Add(DLDataType dtype, const std::vector<std::int64_t>& elements);
  const std::vector<std::int64_t>& ElementsAt(std::uint32_t literal) const {
    return literals_[literal].elements;
  }

  // The first byte as an expression of the source, which then has the constant.
  std::string UseConstant(std::uint32_t constant);
  std::string UseLiteral(std::uint32_t literal);

  // Definitions of all that is used and does not lie behind the caller's pointer.
  std::string Text() const;
  // The bytes behind that pointer.
  const std::vector<std::byte>& weights() const { return weights_; }
  std::uint64_t used_bytes() const;

 private:
  struct Literal {
    DLDataType dtype;
    std::vector<std::int64_t> elements;
    bool is_used = false;
  };

  Result<Decoded> FromFile(const Constant& source) const;
  Result<Decoded> FromSet(const Constant& source) const;

  const Module& module_;
  const EmitCOptions& options_;
  std::map<std::uint32_t, Decoded> decoded_{};
  std::map<std::uint32_t, std::size_t> used_{};  // their offsets in weights_
  std::vector<std::byte> weights_{};
  std::vector<Literal> literals_{};
};

// Elements of integers or truth values among these bytes; none if the dtype is another one.
std::optional<std::vector<std::int64_t>> IntegersIn(const std::vector<std::byte>& bytes, DLDataType dtype,
                                                    std::uint64_t offset, std::uint64_t count);
// Elements of f32 or f64 likewise.
std::optional<std::vector<double>> FloatsIn(const std::vector<std::byte>& bytes, DLDataType dtype,
                                            std::uint64_t offset, std::uint64_t count);
bool IsIntegerDType(DLDataType dtype);

// The C type of an element, such as "float"; where C has none, that of its bytes.
std::string ElementType(DLDataType dtype);

}  // namespace rewire::aot
