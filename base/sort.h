// SPDX-License-Identifier: Apache-2.0
// Sort: the C library's sort for elements of any type that is copied as bytes.
//
// std::sort makes a kilobyte of code for each kind of element and order. Where a library has to be small, and
// what is sorted is short or sorted once, one function for all of them is better.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <functional>
#include <type_traits>

namespace rewire {

// Orders `count` elements so that none is less than one before it. Equal ones come in any order. It may take
// memory for a copy of the elements while it runs, and sorts in place where there is none.
template <typename T, typename IsLess = std::less<T>>
void Sort(T* elements, std::size_t count, IsLess is_less = {}) {
  static_assert(std::is_trivially_copyable_v<T>, "elements are moved as bytes");
  if (count < 2) return;
  qsort_r(
      elements, count, sizeof(T),
      [](const void* a, const void* b, void* context) {
        const IsLess& less = *static_cast<IsLess*>(context);
        const T &first = *static_cast<const T*>(a), &second = *static_cast<const T*>(b);
        return less(first, second) ? -1 : static_cast<int>(less(second, first));
      },
      &is_less);
}

template <typename Elements, typename IsLess = std::less<>>
void Sort(Elements& elements, IsLess is_less = {}) {
  Sort(elements.data(), elements.size(), is_less);
}

}  // namespace rewire
