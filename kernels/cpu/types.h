// SPDX-License-Identifier: Apache-2.0
// From a tensor's dtype to a C++ element type.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "vm/kernel/status.h"
#include "vm/kernel/tensor_view.h"

namespace rewire::kernel::cpu {

template <typename T>
struct Tag {
  using type = T;
};
template <typename... Ts>
struct Types {};

// How an element is held in memory. Booleans are read as bytes, where any value but 0 is true: memory that
// nobody has written yet may hold any byte, which a C++ bool must not.
template <typename T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

// Signed overflow is undefined in C++, so integers are computed as unsigned ones of at least 32 bits, which
// do not promote to a signed type.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

using Floats = Types<float, double>;
using Numbers = Types<float, std::int64_t, std::int32_t, double, std::int8_t, std::uint8_t>;
using SignedNumbers = Types<float, std::int64_t, std::int32_t, double, std::int8_t>;
using AllTypes = Types<float, std::int64_t, std::int32_t, bool, double, std::int8_t, std::uint8_t>;
using Bools = Types<bool>;
using Indices = Types<std::int64_t, std::int32_t>;

template <typename... Ts>
[[gnu::cold]] Status WrongDType(Types<Ts...>, const char* what, TensorView tensor) {
  std::string expected;
  ((expected += (expected.empty() ? "" : ", ") + DTypeName(DTypeOf<Ts>())), ...);
  return TypeError(what, " has dtype ", DTypeName(tensor.dtype()), ", expected ",
                   sizeof...(Ts) == 1 ? "" : "one of ", expected);
}

// Calls body(Tag<T>()) for the T of `types` that is the tensor's. `what` is the argument's name.
template <typename... Ts, typename Body>
Status ForType(Types<Ts...> types, const char* what, TensorView tensor, const Body& body) {
  Status status;
  const bool known = ((tensor.Is<Ts>() && (status = body(Tag<Ts>()), true)) || ...);
  return known ? std::move(status) : WrongDType(types, what, tensor);
}

}  // namespace rewire::kernel::cpu
