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

namespace internal {
// kInvalidArgument naming the first pointer that is null; `names` are theirs, with commas between them.
REWIRE_API Status RequireAll(const char* names, std::initializer_list<const void*> pointers);
// One function for each number of pointers, which come to it in registers.
template <typename... Pointers>
[[gnu::noinline]] Status RequireEach(const char* names, Pointers... pointers) {
  return RequireAll(names, {pointers...});
}
}  // namespace internal

// kInvalidArgument naming the first of the pointers that is null: Require("vm,out", vm, out).
template <typename... Pointees>
Status Require(const char* names, const Pointees*... pointers) {
  static_assert(sizeof...(Pointees) > 0);
  return internal::RequireEach(names, static_cast<const void*>(pointers)...);
}

// A failure becomes the calling thread's last one; success leaves that alone.
REWIRE_API RewireStatus Record(const Status& status) noexcept;

// call(body), its failure recorded, and nothing thrown out of it.
REWIRE_API RewireStatus RunAtBoundary(Status (*call)(void* body), void* body) noexcept;

// Runs the body of a C function, a callable that returns Status. Where something can be thrown it is called
// from one place, which catches for all of them.
template <typename Body>
RewireStatus Boundary(Body body) noexcept {
#if defined(__cpp_exceptions)
  return RunAtBoundary([](void* erased) -> Status { return (*static_cast<Body*>(erased))(); }, &body);
#else
  return Record(body());
#endif
}

Status OutOfRange(const char* what, std::uint64_t index, std::uint64_t count);

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
