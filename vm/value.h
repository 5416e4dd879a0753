// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/value.h>.
//
// Value: a counted reference to anything that a function takes or returns: a tensor, an integer, an ADT (a
// tagged tuple of values) or a closure.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/tensor.h"

namespace rewire {

enum class ValueKind : std::uint8_t { kNone, kTensor, kInteger, kAdt, kClosure, kStorage };

// "tensor", "ADT" and so on, without an article.
REWIRE_API const char* ValueKindName(ValueKind kind);

// Copies share the value. Values are immutable, except for the elements of tensors. They may be read and
// released on any thread, and they outlive the VM that made them.
class REWIRE_API Value {
 public:
  Value() = default;
  Value(Tensor tensor);  // NOLINT: a tensor is a value
  explicit Value(std::int64_t integer);
  // Makes an ADT with these fields. Errors: kInvalidArgument for an empty field or a strided tensor;
  // kOutOfMemory.
  static Result<Value> Adt(std::uint32_t tag, Span<const Value> fields);

  Value(const Value& other);
  Value(Value&& other) noexcept : any_(other.any_) { other.any_ = {}; }
  Value& operator=(Value other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~Value();

  ValueKind kind() const;
  // The tensor; an empty Tensor (false) if this is none.
  Tensor tensor() const;
  // The integer; 0 if this is none.
  std::int64_t integer() const;
  // Tag and number of fields of an ADT; 0 if this is none.
  std::uint32_t tag() const;
  std::uint32_t field_count() const;
  // A field of an ADT. Empty (kNone) if this is no ADT or has no such field.
  Value field(std::uint32_t index) const;

  // For the VM: the value in the form of a register. `any` lends it, Release gives it away, and Adopt takes
  // one over. Exchange does both.
  const RewireFFIAny& any() const { return any_; }
  RewireFFIAny Release() { return std::exchange(any_, RewireFFIAny{}); }
  RewireFFIAny Exchange(RewireFFIAny any) { return std::exchange(any_, any); }
  static Value Adopt(RewireFFIAny any) {
    Value value;
    value.any_ = any;
    return value;
  }

 private:
  RewireFFIAny any_{};
};

}  // namespace rewire
