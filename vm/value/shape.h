// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes and copying of strided elements.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "rewire/base/dtype.h"
#include "rewire/base/export.h"
#include "rewire/base/max_rank.h"
#include "rewire/base/span.h"
#include "rewire/executable_format/types.h"

namespace rewire {

// The product of the dimensions. nullopt if one is negative or the product does not fit.
REWIRE_API std::optional<std::int64_t> CountElements(Span<const std::int64_t> shape);

// TensorBytes for the interpreter, without an optional. Returns false if there is no size. A zero may stand
// before dimensions that do not fit, so empty shapes are checked again.
inline bool QuickBytes(DLDataType dtype, Span<const std::int64_t> shape, std::uint64_t* bytes) {
  auto size = static_cast<std::int64_t>(ElementBytes(dtype));
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(size, dim, &size)) return false;
  }
  *bytes = static_cast<std::uint64_t>(size);
  return size != 0 || TensorBytes(dtype, shape).has_value();
}

// "[2, 3]"
std::string ShapeText(Span<const std::int64_t> shape);
// "f32[2, 3]"
std::string TensorText(const DLTensor& tensor);

// True if two tensors with strides differ only in the address of their elements. Then what was checked for
// one holds for the other, except alignment.
inline bool SameForm(const DLTensor& known, const DLTensor& given) {
  // Device, rank and dtype are adjacent without gaps, so one comparison suffices.
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

// True if row-major without gaps. Strides of dimensions of size 1, and of empty tensors, are ignored.
inline bool IsContiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  bool contiguous = true;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] == 1) continue;
    contiguous = contiguous && tensor.strides[i] == expected;
    expected *= tensor.shape[i];
  }
  return contiguous;
}

// Copies the elements of a host tensor, which may be strided, into contiguous memory.
void CopyElements(const DLTensor& from, void* to);
// The inverse: copies contiguous memory into a host tensor, which may be strided.
void CopyElementsOut(const void* from, const DLTensor& to);

}  // namespace rewire
