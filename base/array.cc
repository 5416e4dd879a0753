// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/array.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

namespace rewire::array_internal {

void Bytes::Grow(std::uint64_t wanted, std::size_t element, Move move) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t room = std::min(std::max(wanted, std::uint64_t{capacity} * 2), kMost);
  if (wanted > kMost) {
#if defined(__cpp_exceptions)
    throw std::bad_alloc();
#else
    std::terminate();
#endif
  }
  const std::size_t bytes = room * element;
  void* const grown = ::operator new(bytes);
  if (move != nullptr) {
    move(grown, data, size);
  } else if (size > 0) {
    std::memcpy(grown, data, size * element);
  }
  ::operator delete(std::exchange(data, grown));
  capacity = static_cast<std::uint32_t>(room);
}

void* Bytes::Add(std::size_t element, Move move) {
  constexpr std::uint64_t kFirst = 4;  // one is seldom all
  if (size == capacity) Grow(size == 0 ? kFirst : std::uint64_t{size} + 1, element, move);
  return static_cast<std::byte*>(data) + element * size++;
}

void Bytes::Resize(std::uint64_t wanted, std::size_t element) {
  if (wanted > capacity) Grow(wanted, element, nullptr);
  if (wanted > size)
    std::memset(static_cast<std::byte*>(data) + size * element, 0, (wanted - size) * element);
  size = static_cast<std::uint32_t>(wanted);
}

void Bytes::Append(const void* elements, std::uint64_t count, std::size_t element) {
  if (count == 0) return;
  const std::uint64_t wanted = size + count;
  // Elements that are the array's own move with it.
  const auto* from = static_cast<const std::byte*>(elements);
  const auto* own = static_cast<const std::byte*>(data);
  const bool inside = from >= own && from < own + size * element;
  const std::ptrdiff_t offset = inside ? from - own : 0;
  if (wanted > capacity) Grow(wanted, element, nullptr);
  if (inside) from = static_cast<const std::byte*>(data) + offset;
  std::memcpy(static_cast<std::byte*>(data) + size * element, from, count * element);
  size = static_cast<std::uint32_t>(wanted);
}

}  // namespace rewire::array_internal
