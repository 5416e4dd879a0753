// SPDX-License-Identifier: Apache-2.0
// What the C API's functions are made of: handles, and the boundary that turns Status and exceptions into
// codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/export.h"
#include "base/status.h"
#include "vm/c_api/status.h"
#include "vm/tensor.h"

namespace rewire::c_api {

struct Argument {
  const char* name;
  const void* pointer;
};
// kInvalidArgument naming the first of them that is null.
REWIRE_API Status Require(std::initializer_list<Argument> arguments);

// Runs call(body) unless a required argument is null. A failure is recorded as the calling thread's last one,
// success leaves that alone. Nothing is thrown out of it.
REWIRE_API RewireStatus RunAtBoundary(std::initializer_list<Argument> required, Status (*call)(void* body),
                                      void* body) noexcept;

// Runs the body of a C function, a callable that returns Status, when none of its required arguments is null.
// All that bodies share is in one place, for there are some ninety of them.
template <typename Body>
RewireStatus Boundary(std::initializer_list<Argument> required, Body body) noexcept {
  return RunAtBoundary(
      required, [](void* erased) -> Status { return (*static_cast<Body*>(erased))(); }, &body);
}
template <typename Body>
RewireStatus Boundary(Body body) noexcept {
  return Boundary({}, body);
}

tl::unexpected<Error> OutOfRange(const char* what, std::uint64_t index, std::uint64_t count);

// A tensor that a C caller describes, checked as far as a view relies on it: rank, shape, data, dimensions.
Result<TensorView> ViewOf(const DLTensor* tensor, const char* name);

// struct_size, the smallest a struct may have: itself and one more word.
inline constexpr std::uint32_t kMinStructSize = 8;

REWIRE_API Status CheckStructSize(const char* name, std::uint32_t given, std::size_t known,
                                  const void* bytes);

// Reads a struct of whatever version: members that the caller's does not have are zero; kUnsupported when it
// has members that are not known here and not zero.
template <typename T>
Status ReadStruct(const char* name, const T* given, T* out) {
  *out = T{};
  const std::uint32_t size = given->struct_size;
  if (Status ok = CheckStructSize(name, size, sizeof(T), given); !ok) return ok;
  std::memcpy(out, given, size < sizeof(T) ? size : sizeof(T));
  return {};
}

// Writes the part of `value` that the caller's struct has room for.
template <typename T>
Status WriteStruct(const char* name, T value, T* out) {
  const std::uint32_t size = out->struct_size;
  if (size < kMinStructSize) return CheckStructSize(name, size, sizeof(T), nullptr);
  value.struct_size = size;
  std::memcpy(out, &value, size < sizeof(T) ? size : sizeof(T));
  return {};
}

// Cuts a text into the caller's buffer.
Status WriteText(const std::string& text, char* buffer, std::size_t capacity, std::size_t* length);

}  // namespace rewire::c_api
