// SPDX-License-Identifier: Apache-2.0
// From a tensor's dtype to a C++ element type.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/vm/kernel/compiled.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cpu {

template <typename T>
struct Tag {
  using type = T;
};
template <typename... Ts>
struct Types {};

// How an element is stored. Booleans are read as bytes, where any value except 0 is true. Unwritten memory
// may hold any byte, which a C++ bool must not.
template <typename T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

// Signed overflow is undefined in C++. So integers are computed as unsigned ones of at least 32 bits, which
// are not promoted to a signed type.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

// The unsigned type of T's size for integers, and T itself for floats. So operations that do not depend on
// the sign are compiled once for both.
template <typename T, bool kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct SignlessOf {
  using Type = T;
};
template <typename T>
struct SignlessOf<T, true> {
  using Type = std::make_unsigned_t<T>;
};
template <typename T>
using Signless = typename SignlessOf<T>::Type;

using Floats = Types<float, double>;
// For kernels that read one element at a time; 16-bit floats are computed as float.
using AnyFloats = Types<float, double, Float16, BFloat16>;
using Integers = Types<std::int64_t, std::int32_t, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                       std::uint32_t, std::uint64_t>;
using Numbers = Types<float, std::int64_t, std::int32_t, double, std::int8_t, std::uint8_t>;
using AnyNumbers = Types<float, std::int64_t, std::int32_t, double, std::int8_t, std::uint8_t, std::int16_t,
                         std::uint16_t, std::uint32_t, std::uint64_t, Float16, BFloat16>;
using AnySigned =
    Types<float, std::int64_t, std::int32_t, double, std::int8_t, std::int16_t, Float16, BFloat16>;
using AllTypes = Types<float, std::int64_t, std::int32_t, bool, double, std::int8_t, std::uint8_t,
                       std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t, Float16, BFloat16>;
using Bools = Types<bool>;
using Indices = Types<std::int64_t, std::int32_t>;

// The error for a tensor whose dtype is none of `count` expected ones.
[[gnu::cold]] REWIRE_KERNEL_INLINE Status WrongDType(const DLDataType* expected, int count, const char* what,
                                                     TensorView tensor);
template <typename... Ts>
[[gnu::cold]] Status WrongDType(Types<Ts...>, const char* what, TensorView tensor) {
  static constexpr DLDataType kExpected[] = {DTypeOf<Ts>()...};
  return WrongDType(kExpected, static_cast<int>(sizeof...(Ts)), what, tensor);
}

// Calls body(Tag<T>()) for the T among `types` that is the tensor's element type. `what` is the argument's
// name.
template <typename... Ts, typename Body>
Status ForType(Types<Ts...> types, const char* what, TensorView tensor, const Body& body) {
  Status status;
  const bool known = ((tensor.Is<Ts>() && (status = body(Tag<Ts>()), true)) || ...);
  return known ? std::move(status) : WrongDType(types, what, tensor);
}

// Calls body(Tag<U>()) for the unsigned integer U of the tensor's element size. For code that moves or
// compares elements without using their values. Refuses other sizes.
template <typename Body>
Status ForElementSize(const char* what, TensorView tensor, const Body& body) {
  switch (tensor.element_bytes()) {
    case 1:
      return body(Tag<std::uint8_t>());
    case 2:
      return body(Tag<std::uint16_t>());
    case 4:
      return body(Tag<std::uint32_t>());
    case 8:
      return body(Tag<std::uint64_t>());
  }
  return TypeError(what, " has dtype ", DTypeName(tensor.dtype()),
                   ", expected elements of 1, 2, 4 or 8 bytes");
}

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE Status WrongDType(const DLDataType* expected, int count, const char* what,
                                       TensorView tensor) {
  std::string names;
  for (int i = 0; i < count; ++i) names += (i == 0 ? "" : ", ") + DTypeName(expected[i]);
  return TypeError(what, " has dtype ", DTypeName(tensor.dtype()), ", expected ", count == 1 ? "" : "one of ",
                   names);
}
#endif

}  // namespace rewire::kernel::cpu
