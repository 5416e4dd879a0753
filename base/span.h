// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/span.h>.
//
// Span: a borrowed view of contiguous elements. It is the core of std::span for headers that must compile as
// C++17. An index outside of it is a bug of the caller, which assertions find (base/assert.h).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

#include "rewire/base/assert.h"

namespace rewire {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : data_(data), size_(size) {}
  // Views anything that has data() and size(). The container must outlive the span.
  template <typename Container, typename = decltype(std::declval<Container&>().data()),
            typename = std::enable_if_t<!std::is_same_v<std::remove_cv_t<Container>, Span>>>
  constexpr Span(Container& container) : data_(container.data()), size_(container.size()) {}
  template <
      typename Container, typename = decltype(std::declval<const Container&>().data()), typename U = T,
      typename = std::enable_if_t<std::is_const_v<U> && !std::is_same_v<std::remove_cv_t<Container>, Span>>,
      typename = void>
  constexpr Span(const Container& container) : data_(container.data()), size_(container.size()) {}
  // Views a braced list, as Span<const T>. The list lives only until the end of the call.
  template <typename U = T, typename = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<std::remove_const_t<T>> list)
      : data_(std::data(list)), size_(list.size()) {}
  // Converts Span<T> to Span<const T>.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr Span(Span<U> other) : data_(other.data()), size_(other.size()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) const {
    REWIRE_ASSERT(i < size_, "index {} of a span of {} elements", i, size_);
    return data_[i];
  }
  // `count` elements from `offset` on; without `count`, all that follow.
  constexpr Span subspan(std::size_t offset, std::size_t count) const {
    REWIRE_ASSERT(offset <= size_ && count <= size_ - offset, "{} elements from {} on of a span of {}", count,
                  offset, size_);
    return Span(data_ + offset, count);
  }
  constexpr Span subspan(std::size_t offset) const {
    REWIRE_ASSERT(offset <= size_, "what follows {} elements of a span of {}", offset, size_);
    return Span(data_ + offset, size_ - offset);
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rewire
