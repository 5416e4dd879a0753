// SPDX-License-Identifier: Apache-2.0
// Value: a counted reference to anything that a function takes or returns: a tensor, an integer, an ADT, a
// closure.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/export.h"
#include "base/span.h"
#include "base/status.h"
#include "vm/kernel/ffi_abi.h"
#include "vm/tensor.h"

namespace rewire {

enum class ValueKind : std::uint8_t { kNone, kTensor, kInteger, kAdt, kClosure, kStorage };

// "tensor", "ADT", ... with its article left to the sentence.
REWIRE_API const char* ValueKindName(ValueKind kind);

// Copies share. Values are immutable but for the elements of tensors; they may be read and released on any
// thread, and outlive the VM that made them.
class REWIRE_API Value {
 public:
  Value() = default;
  Value(Tensor tensor);  // NOLINT: a tensor is a value
  explicit Value(std::int64_t integer);
  // An ADT with these fields. kInvalidArgument for an empty field or a strided tensor; kOutOfMemory.
  static Result<Value> Adt(std::uint32_t tag, Span<const Value> fields);

  Value(const Value& other);
  Value(Value&& other) noexcept : any_(other.any_) { other.any_ = {}; }
  Value& operator=(Value other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~Value();

  ValueKind kind() const;
  // Null (false) unless this is a tensor.
  Tensor tensor() const;
  // 0 unless this is an integer.
  std::int64_t integer() const;
  // 0 unless this is an ADT.
  std::uint32_t tag() const;
  std::uint32_t field_count() const;
  // None when this is no ADT or has no such field.
  Value field(std::uint32_t index) const;

  // For the VM: the register's form; borrowed, given away, and taken over.
  const RewireFFIAny& any() const { return any_; }
  RewireFFIAny Release() { return std::exchange(any_, RewireFFIAny{}); }
  static Value Adopt(RewireFFIAny any) {
    Value value;
    value.any_ = any;
    return value;
  }

 private:
  RewireFFIAny any_{};
};

}  // namespace rewire
