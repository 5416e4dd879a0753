// SPDX-License-Identifier: Apache-2.0
#include "base/sort.h"

namespace rewire::sort_internal {
namespace {

// Lets the element at `root` sink until no child of it is greater.
void Sink(const Elements& elements, std::size_t root, std::size_t count) {
  while (2 * root + 1 < count) {
    std::size_t child = 2 * root + 1;
    if (child + 1 < count && elements.less(elements.state, child, child + 1)) ++child;
    if (!elements.less(elements.state, root, child)) return;
    elements.swap(elements.state, root, child);
    root = child;
  }
}

}  // namespace

void HeapSort(const Elements& elements, std::size_t count) {
  for (std::size_t i = count / 2; i-- > 0;) Sink(elements, i, count);
  for (std::size_t last = count; last-- > 1;) {
    elements.swap(elements.state, 0, last);
    Sink(elements, 0, last);
  }
}

}  // namespace rewire::sort_internal
