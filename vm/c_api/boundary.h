// SPDX-License-Identifier: Apache-2.0
// What the C API's functions are made of: handles, and the boundary that turns Status and exceptions into
// codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/export.h"
#include "base/status.h"
#include "vm/c_api/status.h"
#include "vm/tensor.h"

namespace rewire::c_api {

// A failure becomes the calling thread's last one; success leaves that alone.
REWIRE_API RewireStatus Record(Status status) noexcept;

namespace internal {
// kInvalidArgument naming the first pointer that is null; `names` are theirs, with commas between them.
REWIRE_API Status RequireAll(const char* names, std::initializer_list<const void*> pointers);
// One function for each number of pointers, which come to it in registers.
template <typename... Pointers>
[[gnu::noinline]] Status RequireEach(const char* names, Pointers... pointers) {
  return RequireAll(names, {pointers...});
}
template <typename... Pointers>
[[gnu::noinline]] RewireStatus GivenEach(const char* names, Pointers... pointers) noexcept {
  return Record(RequireAll(names, {pointers...}));
}
}  // namespace internal

// kInvalidArgument naming the first of the pointers that is null: Require("vm,out", vm, out).
template <typename... Pointees>
Status Require(const char* names, const Pointees*... pointers) {
  static_assert(sizeof...(Pointees) > 0);
  return internal::RequireEach(names, static_cast<const void*>(pointers)...);
}

// kRewireOk, or what was recorded: that the first of the pointers that is null was NULL. What Boundary takes:
// Given("vm,out", vm, out).
template <typename... Pointees>
RewireStatus Given(const char* names, const Pointees*... pointers) noexcept {
  static_assert(sizeof...(Pointees) > 0);
  return internal::GivenEach(names, static_cast<const void*>(pointers)...);
}

// What is being thrown, recorded as a failure: for a catch (...) alone.
[[gnu::cold]] REWIRE_API RewireStatus RecordCaught() noexcept;

// Runs the body of a C function, a callable that returns Status: its failure is recorded, and nothing is
// thrown out of it.
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

// The same where the arguments that must not be NULL are `given`, and otherwise what that recorded.
template <typename Body>
RewireStatus Boundary(RewireStatus given, Body body) noexcept {
  return given == kRewireOk ? Boundary(std::move(body)) : given;
}

Status OutOfRange(const char* what, std::uint64_t index, std::uint64_t count);

// A tensor that a C caller describes, checked as far as a view relies on it: rank, shape, data, dimensions.
Result<TensorView> ViewOf(const DLTensor* tensor, const char* name);

// What ReadStruct and WriteStruct do with a struct of which `known` bytes are known here.
REWIRE_API Status ReadStructBytes(const char* name, const void* given, void* out, std::size_t known);
REWIRE_API Status WriteStructBytes(const char* name, const void* value, void* out, std::size_t known);

// Reads a struct of whatever version: members that the caller's does not have are zero; kUnsupported when it
// has members that are not known here and not zero.
template <typename T>
Status ReadStruct(const char* name, const T* given, T* out) {
  static_assert(offsetof(T, struct_size) == 0);
  return ReadStructBytes(name, given, out, sizeof(T));
}

// Writes the part of `value` that the caller's struct has room for.
template <typename T>
Status WriteStruct(const char* name, const T& value, T* out) {
  static_assert(offsetof(T, struct_size) == 0);
  return WriteStructBytes(name, &value, out, sizeof(T));
}

// Cuts a text into the caller's buffer.
Status WriteText(const std::string& text, char* buffer, std::size_t capacity, std::size_t* length);

}  // namespace rewire::c_api
