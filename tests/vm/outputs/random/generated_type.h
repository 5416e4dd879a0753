// SPDX-License-Identifier: Apache-2.0
// Types of the random programs' registers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rewire::test::generated {

// The generator's knowledge of a register; signatures may say less.
struct Type {
  enum Kind : std::uint8_t { kTensor, kShape, kInteger, kTag, kTuple, kClosure };
  Kind kind = kTensor;
  std::vector<std::int64_t> shape;  // kTensor: f32; kShape: {rank}, i64
  std::vector<Type> fields;         // kTuple
  std::uint32_t function = 0;       // kClosure
  std::uint32_t captured = 0;

  bool operator==(const Type& other) const {
    return kind == other.kind && shape == other.shape && fields == other.fields &&
           function == other.function && captured == other.captured;
  }
};

inline const std::vector<std::vector<std::int64_t>> kShapes = {{4}, {2, 2}, {1, 4}, {6}, {2, 3}, {3, 2}};

inline Type TensorOf(std::vector<std::int64_t> shape) { return {Type::kTensor, std::move(shape), {}, 0, 0}; }
inline Type TupleOf(std::vector<Type> fields) { return {Type::kTuple, {}, std::move(fields), 0, 0}; }

inline std::int64_t Elements(const Type& type) {
  std::int64_t count = 1;
  for (const std::int64_t dim : type.shape) count *= dim;
  return count;
}

inline std::string Joined(const std::vector<std::int64_t>& dims, const char* between) {
  std::string text;
  for (const std::int64_t dim : dims) text += (text.empty() ? "" : between) + std::to_string(dim);
  return text;
}

inline std::string ShapeConstant(const Type& type) { return "shape_" + Joined(type.shape, "_"); }

inline std::string Text(const Type& type) {
  switch (type.kind) {
    case Type::kTensor:
      return "f32[" + Joined(type.shape, ", ") + "]";
    case Type::kShape:
      return "i64[" + Joined(type.shape, ", ") + "]";
    case Type::kInteger:
    case Type::kTag:
      return "integer";
    case Type::kClosure:
      return "closure";
    case Type::kTuple: {
      std::string text;
      for (const Type& field : type.fields) text += (text.empty() ? "" : ", ") + Text(field);
      return "(" + text + ")";
    }
  }
  return {};
}

}  // namespace rewire::test::generated
