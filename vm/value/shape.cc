// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value/shape.h"

#include <cstring>

#include "rewire/base/message.h"

namespace rewire {

std::optional<std::int64_t> CountElements(Span<const std::int64_t> shape) {
  // One byte an element: the same rules as for sizes.
  const std::optional<std::uint64_t> bytes = TensorBytes(kUInt8, shape);
  if (!bytes) return std::nullopt;
  return static_cast<std::int64_t>(*bytes);
}

std::string ShapeText(Span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    Append(&text, {"{}", shape[i]});
  }
  return Format("{}]", text);
}

std::string TensorText(const DLTensor& tensor) {
  return DTypeName(tensor.dtype) + ShapeText({tensor.shape, static_cast<std::size_t>(tensor.ndim)});
}

namespace {

// Calls move(strided, contiguous, bytes) for every run of elements that is contiguous on both sides, in
// row-major order.
template <typename Strided, typename Contiguous, typename Move>
void ForEachRun(const DLTensor& tensor, Strided* strided, Contiguous* contiguous, Move move) {
  const std::uint64_t element = ElementBytes(tensor.dtype);
  const std::int32_t rank = tensor.ndim;
  const Span<const std::int64_t> shape(tensor.shape, static_cast<std::size_t>(rank));
  const std::int64_t count = CountElements(shape).value_or(0);
  if (count == 0) return;
  if (IsContiguous(tensor)) {
    move(strided, contiguous, static_cast<std::uint64_t>(count) * element);
    return;
  }
  // An odometer over all dimensions but the last.
  std::int64_t index[kMaxRank] = {};
  const std::int64_t last = tensor.shape[rank - 1];
  const std::int64_t last_stride = tensor.strides[rank - 1];
  for (std::int64_t done = 0; done < count; done += last) {
    if (last_stride == 1) {
      move(strided, contiguous, static_cast<std::uint64_t>(last) * element);
    } else {
      for (std::int64_t i = 0; i < last; ++i) {
        move(strided + i * last_stride * static_cast<std::int64_t>(element),
             contiguous + i * static_cast<std::int64_t>(element), element);
      }
    }
    contiguous += last * static_cast<std::int64_t>(element);
    for (std::int32_t d = rank - 1; d-- > 0;) {
      strided += tensor.strides[d] * static_cast<std::int64_t>(element);
      if (++index[d] < tensor.shape[d]) break;
      strided -= tensor.strides[d] * tensor.shape[d] * static_cast<std::int64_t>(element);
      index[d] = 0;
    }
  }
}

}  // namespace

void CopyElements(const DLTensor& from, void* to) {
  ForEachRun(from, static_cast<const char*>(from.data) + from.byte_offset, static_cast<char*>(to),
             [](const char* strided, char* contiguous, std::uint64_t bytes) {
               std::memcpy(contiguous, strided, bytes);
             });
}

void CopyElementsOut(const void* from, const DLTensor& to) {
  ForEachRun(to, static_cast<char*>(to.data) + to.byte_offset, static_cast<const char*>(from),
             [](char* strided, const char* contiguous, std::uint64_t bytes) {
               std::memcpy(strided, contiguous, bytes);
             });
}

}  // namespace rewire
