// SPDX-License-Identifier: Apache-2.0
//
// Sorts positions and asks meanwhile whether to go on. std::sort and std::partial_sort cannot do that.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <utility>

#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// True if a comparison of this much work may itself ask whether to go on, and answer anything once told to
// stop. Shorter comparisons must not, because std::sort uses them and needs a consistent order.
inline bool ComparisonMayAsk(std::int64_t work) { return work > kPace / 16; }

// Positions that hold their keys are in the order of integers. All who sort these share one instance.
using PositionOrder = std::less<std::int64_t>;

// is_less(a, b) must be a strict total order of positions; `work` is the work of one comparison. If told to
// stop, the range still has the same positions, in any order.
template <typename IsLess>
class PacedSort {
 public:
  PacedSort(const IsLess& is_less, std::int64_t work, Pace& pace)
      : is_less_(is_less), work_(std::max<std::int64_t>(1, work)), pace_(pace) {}

  // Quicksort for ranges longer than Short(). Returns false if told to stop.
  [[nodiscard]] bool Sort(std::int64_t* first, std::int64_t* last) {
    struct Segment {
      std::int64_t* first;
      std::int64_t* last;
      int splits;  // splits that remain before heap sort is used, so that bad pivots cannot make it quadratic
    };
    Segment waiting[64];  // the shorter half is sorted first, so one entry per bit of the length suffices
    int count = 0;
    waiting[count++] = {first, last,
                        2 * static_cast<int>(std::bit_width(static_cast<std::uint64_t>(last - first)))};
    while (count > 0) {
      Segment segment = waiting[--count];
      while (segment.last - segment.first > Short() && segment.splits-- > 0) {
        std::int64_t* middle = Split(segment.first, segment.last);
        if (middle == nullptr) return false;
        const bool left_is_longer = middle - segment.first > segment.last - middle;
        Segment left{segment.first, middle, segment.splits}, right{middle, segment.last, segment.splits};
        waiting[count++] = left_is_longer ? left : right;
        segment = left_is_longer ? right : left;
      }
      if (!Finish(segment.first, segment.last)) return false;
    }
    return true;
  }

  // Sorts the first `kept` positions; the others follow in any order.
  [[nodiscard]] bool SortFirst(std::int64_t* first, std::int64_t kept, const std::int64_t* last) {
    if (kept < last - first) {
      if (!MakeHeap(first, kept)) return false;
      for (std::int64_t* at = first + kept; kept > 0 && at < last; ++at) {
        if (!pace_.Spend(work_)) return false;
        if (!is_less_(*at, *first)) continue;
        std::swap(*at, *first);
        if (!Sift(first, kept, 0)) return false;
      }
    }
    return Sort(first, first + kept);
  }

 private:
  // The longest range that std::sort may take: it sorts it in less time than kPace operations.
  std::int64_t Short() const { return std::clamp<std::int64_t>(kPace / 16 / work_, 1, 4096); }

  // Splits the range: elements before the result are not greater than those from it on, and both parts are
  // not empty. Null: told to stop.
  std::int64_t* Split(std::int64_t* first, std::int64_t* last) {
    std::int64_t* middle = first + (last - first) / 2;
    if (!pace_.Spend(Times(3, work_))) return nullptr;
    if (is_less_(*middle, *first)) std::swap(*middle, *first);
    if (last - first == 2) return middle;
    if (is_less_(last[-1], *middle)) std::swap(last[-1], *middle);
    if (is_less_(*middle, *first)) std::swap(*middle, *first);
    const std::int64_t pivot = *middle;
    std::int64_t *left = first, *right = last - 1;
    for (;;) {
      do {
        if (!pace_.Spend(work_)) return nullptr;
        ++left;
      } while (is_less_(*left, pivot));
      do {
        if (!pace_.Spend(work_)) return nullptr;
        --right;
      } while (is_less_(pivot, *right));
      if (left >= right) return left;
      std::swap(*left, *right);
    }
  }

  bool Finish(std::int64_t* first, std::int64_t* last) {
    const std::int64_t count = last - first;
    if (count <= Short()) {
      const std::int64_t depth = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count)));
      if (count > 1 && !pace_.Spend(Times(work_, count, depth))) return false;
      std::sort(first, last, is_less_);
      return true;
    }
    if (!MakeHeap(first, count)) return false;
    for (std::int64_t size = count; size-- > 1;) {
      std::swap(first[0], first[size]);
      if (!Sift(first, size, 0)) return false;
    }
    return true;
  }

  bool MakeHeap(std::int64_t* heap, std::int64_t size) {
    for (std::int64_t i = size / 2; i-- > 0;) {
      if (!Sift(heap, size, i)) return false;
    }
    return true;
  }
  // Moves the element at `hole` down until no child is greater.
  bool Sift(std::int64_t* heap, std::int64_t size, std::int64_t hole) {
    const std::int64_t value = heap[hole];
    bool goes = true;
    for (std::int64_t child = 2 * hole + 1; goes && child < size; child = 2 * hole + 1) {
      goes = pace_.Spend(Times(2, work_));
      if (child + 1 < size && is_less_(heap[child], heap[child + 1])) ++child;
      if (!is_less_(value, heap[child])) break;
      heap[hole] = heap[child];
      hole = child;
    }
    heap[hole] = value;
    return goes;
  }

  const IsLess& is_less_;
  std::int64_t work_;
  Pace& pace_;
};

}  // namespace rewire::kernel::cpu
