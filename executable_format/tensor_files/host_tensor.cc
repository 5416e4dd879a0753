// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/host_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "rewire/base/checked_math.h"
#include "rewire/base/dtype.h"

namespace rewire {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

Result<std::uint64_t> CompactBytes(DLDataType dtype, Span<const std::int64_t> shape) {
  // A zero anywhere makes the tensor empty, whatever the product of the other dimensions.
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  std::optional<std::uint64_t> bytes = ElementBytes(dtype);
  for (const std::int64_t dim : shape) {
    if (dim < 0) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("{} has a negative dimension", TensorTypeText(dtype, shape)));
    }
    if (bytes && !empty) bytes = CheckedMul(*bytes, static_cast<std::uint64_t>(dim));
  }
  if (!bytes) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("{} has more bytes than 64 bits can count", TensorTypeText(dtype, shape)));
  }
  return empty ? 0 : *bytes;
}

std::string TensorTypeText(DLDataType dtype, Span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", DTypeName(dtype), fmt::join(shape.begin(), shape.end(), ", "));
}

SharedBytes AllocateBytes(std::size_t size, std::byte** data) {
  const auto release = [](std::byte* p) { ::operator delete (p, std::align_val_t{kAlignment}); };
  std::shared_ptr<std::byte> owner(
      static_cast<std::byte*>(::operator new (std::max<std::size_t>(size, 1), std::align_val_t{kAlignment})),
      release);
  *data = owner.get();
  return {{owner.get(), size}, owner};
}

SharedBytes CopyBytes(Span<const std::byte> bytes) {
  std::byte* data = nullptr;
  SharedBytes copy = AllocateBytes(bytes.size(), &data);
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return copy;
}

SharedBytes AlignedFor(DLDataType dtype, const SharedBytes& bytes) {
  // The alignment of a number is its size, of anything wider at most 8: complex numbers and vectors.
  std::uint64_t alignment = 8;
  while (ElementBytes(dtype) % alignment != 0) alignment /= 2;
  if (reinterpret_cast<std::uintptr_t>(bytes.view.data()) % alignment == 0) return bytes;
  return CopyBytes(bytes.view);
}

}  // namespace rewire
