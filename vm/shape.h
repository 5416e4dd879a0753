// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes and copying of strided elements.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/export.h"
#include "base/span.h"
#include "executable_format/types.h"

namespace rewire {

// The highest rank that Rewire handles, in files and at its door.
inline constexpr std::int32_t kMaxRank = 32;

// The product of the dimensions; nothing when one is negative or the product does not fit.
REWIRE_API std::optional<std::int64_t> CountElements(Span<const std::int64_t> shape);

// TensorBytes without its optional, for the interpreter: false where it has none, and for the rare empty
// shape whose other dimensions overflow.
inline bool QuickBytes(DLDataType dtype, Span<const std::int64_t> shape, std::uint64_t* bytes) {
  auto size = static_cast<std::int64_t>(ElementBytes(dtype));
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(size, dim, &size)) return false;
  }
  *bytes = static_cast<std::uint64_t>(size);
  return true;
}

// "[2, 3]"
std::string ShapeText(Span<const std::int64_t> shape);
// "f32[2, 3]"
std::string TensorText(const DLTensor& tensor);

// Whether two tensors, both with strides, differ in nothing but where their elements are: what has been
// checked of the one then holds for the other, but for alignment.
inline bool SameForm(const DLTensor& known, const DLTensor& given) {
  // Device, rank and dtype stand side by side, without gaps: one comparison.
  constexpr std::size_t kForm = sizeof(DLDevice) + sizeof(std::int32_t) + sizeof(DLDataType);
  static_assert(offsetof(DLTensor, dtype) + sizeof(DLDataType) == offsetof(DLTensor, device) + kForm);
  if (known.strides == nullptr || given.strides == nullptr ||
      std::memcmp(&known.device, &given.device, kForm) != 0) {
    return false;
  }
  for (std::int32_t i = 0; i < known.ndim; ++i) {
    if (known.shape[i] != given.shape[i] || known.strides[i] != given.strides[i]) return false;
  }
  return true;
}

// Row-major without gaps. Strides of dimensions of size 1, and of empty tensors, do not matter.
bool IsContiguous(const DLTensor& tensor);

// Copies the elements of a host tensor, strides followed, into contiguous memory.
void CopyElements(const DLTensor& from, void* to);
// The reverse: contiguous memory into a host tensor with strides.
void CopyElementsOut(const void* from, const DLTensor& to);

}  // namespace rewire
