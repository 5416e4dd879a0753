// SPDX-License-Identifier: Apache-2.0
//
// A Value is what is known of a register before the program runs: its kind, the type and shape of a tensor,
// and where its bytes lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/executable_format/types.h"

namespace rewire::aot {

// The memory of a tensor or of a storage.
struct Place {
  enum class Base : std::uint8_t {
    kNowhere,
    kConstant,  // of the module
    kLiteral,   // integers that the source holds: a shape, or a number that a kernel reads as a tensor
    kInput,     // leaf of the entry point's inputs
    kOutput,    // leaf of its result
    kStorage,   // a site (sites.h)
    kVariable,  // a pointer of the source that is set where paths meet
    kNumber,    // a variable that holds an integer, which a kernel reads as a tensor
  };

  Base base = Base::kNowhere;
  std::uint32_t index = 0;
  std::uint64_t offset = 0;

  bool operator==(const Place&) const = default;
};

// An integer: known, or in a variable of the source.
struct Number {
  bool known = true;
  std::int64_t value = 0;
  std::uint32_t variable = 0;

  bool operator==(const Number&) const = default;
};

struct Value {
  enum class Kind : std::uint8_t { kUndefined, kInteger, kTensor, kAdt, kClosure, kStorage };

  bool operator==(const Value&) const = default;

  Kind kind = Kind::kUndefined;
  // The number is the value of an integer, the tag of an ADT or the function of a closure.
  Number number;
  bool is_narrow = false;  // an integer of 32 bits
  // A tensor has all of these; a storage has a place and bytes.
  DLDataType dtype = kUnknownDType;
  std::vector<std::int64_t> dims;
  // Read-only memory may not be written; on some paths it is such, on others not, if `is_unsure`.
  bool is_read_only = false;
  bool is_unsure = false;
  Place place;
  std::uint64_t bytes = 0;
  // These are the fields of an ADT, or the values that a closure has captured.
  std::vector<Value> fields;
};

const char* KindName(Value::Kind kind);
Value IntegerValue(std::int64_t value, bool is_narrow);
// "f32[1, 10]"
std::string TensorText(const Value& tensor);
// The elements; `dims` are at least 0 and their product fits.
std::uint64_t ElementsOf(const std::vector<std::int64_t>& dims);

// Calls visit(const Value&) for the value, then for each part of it: in the same order for values of the same
// structure.
template <typename Visit>
void ForEachPart(const Value& value, Visit& visit) {
  visit(value);
  for (const Value& field : value.fields) ForEachPart(field, visit);
}

}  // namespace rewire::aot
