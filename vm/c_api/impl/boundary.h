// SPDX-License-Identifier: Apache-2.0
//
// The functions of the C API share handles, and the boundary that turns a Status or an exception into a
// code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "rewire/base/export.h"
#include "rewire/base/message.h"
#include "rewire/base/status.h"
#include "rewire/vm/c_api/status.h"
#include "rewire/vm/tensor.h"

namespace rewire::c_api {

// Stores a failure as the calling thread's last one. A success changes nothing.
REWIRE_API RewireStatus Record(const Status& status) noexcept;

namespace internal {
// Fails with kInvalidArgument and names the first pointer that is null. `names` are the pointers' names,
// separated by commas.
REWIRE_API Status RequireAll(const char* names, std::initializer_list<const void*> pointers);
// Instantiated once for each number of pointers, which are passed in registers.
template <typename... Pointers>
[[gnu::noinline]] Status RequireEach(const char* names, Pointers... pointers) {
  return RequireAll(names, {pointers...});
}
template <typename... Pointers>
[[gnu::noinline]] RewireStatus GivenEach(const char* names, Pointers... pointers) noexcept {
  return Record(RequireAll(names, {pointers...}));
}
}  // namespace internal

// Fails with kInvalidArgument and names the first pointer that is null: Require("vm,out", vm, out).
template <typename... Pointees>
Status Require(const char* names, const Pointees*... pointers) {
  static_assert(sizeof...(Pointees) > 0);
  return internal::RequireEach(names, static_cast<const void*>(pointers)...);
}

// Returns kRewireOk, or the code of the recorded failure that the first null pointer was NULL. Its result is
// passed to Boundary: Given("vm,out", vm, out).
template <typename... Pointees>
RewireStatus Given(const char* names, const Pointees*... pointers) noexcept {
  static_assert(sizeof...(Pointees) > 0);
  return internal::GivenEach(names, static_cast<const void*>(pointers)...);
}

// Only for a catch (...): records the exception as a failure.
[[gnu::cold]] REWIRE_API RewireStatus RecordCaught() noexcept;

// Runs the body of a C function, which is a callable that returns a Status. Records its failure, and lets no
// exception out.
template <typename Body>
RewireStatus Boundary(Body body) noexcept {
#if defined(__cpp_exceptions)
  try {
    return Record(body());
  } catch (...) {
    return RecordCaught();
  }
#else
  return Record(body());
#endif
}

// The same, but only if `given` is kRewireOk; otherwise returns `given`.
template <typename Body>
RewireStatus Boundary(RewireStatus given, Body body) noexcept {
  return given == kRewireOk ? Boundary(std::move(body)) : given;
}

// Inline, so that each library has its own and none is exported.
[[gnu::noinline]] inline Status OutOfRange(const char* what, std::uint64_t index, std::uint64_t count) {
  return Fail(StatusCode::kInvalidArgument, "{} {} asked for, there are {}", what, index, count);
}

// Makes a view of a tensor that a C caller describes. Checks everything that a view relies on: rank, shape,
// data and dimensions.
Result<TensorView> ViewOf(const DLTensor* tensor, const char* name);

// Shared by ReadStruct and WriteStruct. `known` is the number of bytes of the struct that this library knows.
REWIRE_API Status ReadStructBytes(const char* name, const void* given, void* out, std::size_t known);
REWIRE_API Status WriteStructBytes(const char* name, const void* value, void* out, std::size_t known);

// Reads a struct of any version. Members that the caller's struct does not have are zero. Errors:
// kUnsupported if the caller sets members that this library does not know.
template <typename T>
Status ReadStruct(const char* name, const T* given, T* out) {
  static_assert(offsetof(T, struct_size) == 0);
  return ReadStructBytes(name, given, out, sizeof(T));
}

// Writes the part of `value` that fits into the caller's struct.
template <typename T>
Status WriteStruct(const char* name, const T& value, T* out) {
  static_assert(offsetof(T, struct_size) == 0);
  return WriteStructBytes(name, &value, out, sizeof(T));
}

// Copies a text to the caller's buffer and cuts it if necessary.
[[gnu::noinline]] inline Status WriteText(const std::string& text, char* buffer, std::size_t capacity,
                                          std::size_t* length) {
  if (buffer == nullptr && capacity > 0)
    return Fail(StatusCode::kInvalidArgument, "buffer is NULL, capacity is not 0");
  if (capacity > 0) {
    const std::size_t size = text.size() < capacity - 1 ? text.size() : capacity - 1;
    std::memcpy(buffer, text.data(), size);
    buffer[size] = '\0';
  }
  if (length != nullptr) *length = text.size();
  return {};
}

}  // namespace rewire::c_api
