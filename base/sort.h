// SPDX-License-Identifier: Apache-2.0
// Sorting in one function for all types. std::sort is a kilobyte for every type and order; what librewire
// sorts is small and sorted once, when an executable is opened or linked.
#pragma once

#include <cstddef>
#include <utility>

#include "base/span.h"

namespace rewire {

namespace sort_internal {
// `less(state, a, b)` and `swap(state, a, b)` act on the elements at two places.
struct Elements {
  void* state;
  bool (*less)(void* state, std::size_t a, std::size_t b);
  void (*swap)(void* state, std::size_t a, std::size_t b);
};
void HeapSort(const Elements& elements, std::size_t count);
}  // namespace sort_internal

// Ascending by less(a, b), in place; equal elements in any order. O(n log n).
template <typename T, typename Less>
void Sort(Span<T> items, Less less) {
  struct State {
    T* items;
    Less less;
  } state{items.data(), std::move(less)};
  sort_internal::HeapSort({&state,
                           [](void* erased, std::size_t a, std::size_t b) -> bool {
                             auto& [values, before] = *static_cast<State*>(erased);
                             return before(values[a], values[b]);
                           },
                           [](void* erased, std::size_t a, std::size_t b) {
                             T* values = static_cast<State*>(erased)->items;
                             std::swap(values[a], values[b]);
                           }},
                          items.size());
}

}  // namespace rewire
