// SPDX-License-Identifier: Apache-2.0
//
// The readers of .tflite files share these: vectors that may be missing, and errors of formatted text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "rewire/base/status.h"
#include "rewire/base/utf8.h"
#include "rewire/compiler/import/tflite_schema.h"

namespace rewire::compiler::tflite {

inline constexpr std::size_t kMostShownBytes = 256;  // in messages
inline constexpr std::size_t kMostName = 1000;

// Vectors of the file may be missing, which is the same as being empty.
template <typename Vector>
std::size_t SizeOf(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}
template <typename Vector>
auto At(const Vector* vector, std::size_t i) {
  return vector->Get(static_cast<flatbuffers::uoffset_t>(i));
}

inline std::string TextOf(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

// A name of the file, or the other one where it is missing, long, or cannot be printed.
inline std::string NameOr(const std::string& given, const std::string& other) {
  return !given.empty() && given.size() <= kMostName && IsPrintable(given) ? given : other;
}

template <typename... Args>
Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(StatusCode::kInvalidFile, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status Refuse(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rewire::compiler::tflite
