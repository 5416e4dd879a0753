// SPDX-License-Identifier: Apache-2.0
// Slices of a tensor along an axis, or its elements, as things that have an order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/indexing/ordered_key.h"
#include "rewire/kernels/cpu/indexing/positions.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/paced_sort.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

// Slices of x along an axis, or single elements, as things to be compared.
struct UniqueAttributes {
  bool has_axis = false;
  std::int64_t axis = 0;
  bool sorted = true;

  void Read(Attributes& attributes) {
    has_axis = attributes.Has("axis");
    axis = attributes.Int("axis", 0);
    sorted = attributes.Bool("sorted", true);
  }
};

template <typename T>
struct Slices {
  const T* data;
  std::int64_t outer, count, inner;

  // Slices may be long: then it asks, and gives any result when told to stop.
  int Compare(std::int64_t a, std::int64_t b, Pace& pace) const {
    const bool asks = ComparisonMayAsk(Work());
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        if (asks && !pace.Spend(1)) return 0;
        const auto x = static_cast<Computed<T>>(data[(o * count + a) * inner + i]);
        const auto y = static_cast<Computed<T>>(data[(o * count + b) * inner + i]);
        if (IsBelow(x, y)) return -1;
        if (IsBelow(y, x)) return 1;
      }
    }
    return 0;
  }
  // Positions in order, equal ones next to each other and the earliest first.
  bool Sort(std::int64_t* order, Pace& pace) const {
    if constexpr (sizeof(T) <= 4) {
      if (Work() > 0 && HasKeyedPositions<T>(count)) return SortKeyed(order, pace);
    }
    return Enumerate(order, count, pace) && SortWhole(order, order + count, pace);
  }
  // The same by integers that hold the key of a slice's first element and its position. Slices are compared
  // whole only where those elements are equal.
  bool SortKeyed(std::int64_t* order, Pace& pace) const {
    const bool read = pace.For(count, 2, [this, order](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) order[i] = KeyedPosition(OrderedKeyOf(data[i * inner]), i);
    });
    if (!read || !PacedSort(PositionOrder(), 1, pace).Sort(order, order + count)) return false;
    if (Work() == 1) return KeepPositions(order, count, pace);
    for (std::int64_t begin = 0; begin < count;) {
      std::int64_t end = begin + 1;
      while (end < count && KeyPart(order[end]) == KeyPart(order[begin])) {
        ++end;
        if (!pace.Spend(1)) return false;
      }
      if (!KeepPositions(order + begin, end - begin, pace)) return false;
      if (end - begin > 1 && !SortWhole(order + begin, order + end, pace)) return false;
      begin = end;
    }
    return true;
  }
  bool SortWhole(std::int64_t* begin, std::int64_t* end, Pace& pace) const {
    const auto is_before = [this, &pace](std::int64_t a, std::int64_t b) {
      const int compared = Compare(a, b, pace);
      return compared != 0 ? compared < 0 : a < b;
    };
    return PacedSort(is_before, Work(), pace).Sort(begin, end);
  }
  // The work of comparing two tensors that turn out equal.
  std::int64_t Work() const { return Times(outer, inner); }
};

template <typename T>
Status SlicesOf(const UniqueAttributes& attributes, TensorView x, Slices<T>* slices) {
  *slices = Slices<T>{x.data<T>(), 1, x.size(), 1};
  if (!attributes.has_axis) return Status();
  int along = 0;
  if (Status s = NormalizeAxis(attributes.axis, x.ndim(), &along); !s.ok()) return s;
  slices->outer = Product(x.dims(), 0, along);
  slices->count = x.dim(along);
  slices->inner = Product(x.dims(), along + 1, x.ndim());
  if (slices->inner == 0) slices->outer = 0;  // nothing to compare, however often
  return Status();
}

// A table of a size that depends on the number of slices, and a position for each slice in each of `lists`.
inline bool DeclareSlices(const UniqueAttributes& attributes, WorkspaceSizes& sizes, int lists,
                          std::int64_t (*table_size)(std::int64_t count), std::int64_t table_bytes) {
  const DLTensor* x = sizes.Tensor(0);
  int along = 0;
  if (x == nullptr || (attributes.has_axis && !NormalizeAxis(attributes.axis, x->ndim, &along).ok()))
    return false;
  const std::int64_t count = attributes.has_axis ? x->shape[along] : SizeOf(x);
  sizes.Take(table_size(count), table_bytes);
  for (int i = 0; i < lists; ++i) sizes.Take(std::max<std::int64_t>(1, count), sizeof(std::int64_t));
  return true;
}

}  // namespace rewire::kernel::cpu
