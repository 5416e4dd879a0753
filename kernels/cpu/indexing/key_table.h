// SPDX-License-Identifier: Apache-2.0
//
// Finds the place of elements in a list of keys.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "rewire/kernels/cpu/indexing/ordered_key.h"
#include "rewire/kernels/cpu/support/paced_sort.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// A few keys are compared with every element, several elements at a time. More are sorted once.
template <typename T>
class KeyTable {
 public:
  using Key = OrderedKey<T>;

  // `keys` must live as long as the table. Refuses more keys than a place of 32 bits counts.
  Status Init(const T* keys, std::int64_t count) {
    constexpr auto kMostKeys = std::int64_t{std::numeric_limits<std::int32_t>::max()};
    if (count > kMostKeys) return ValueError("there are ", count, " keys, expected at most ", kMostKeys);
    count_ = count;
    if (Status s = Workspace(std::max<std::int64_t>(1, count), &order_); !s.ok()) return s;
    if (Status s = Workspace(std::max<std::int64_t>(1, count), &keys_); !s.ok()) return s;
    Pace pace;
    bool done = pace.For(count, 2, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        order_[i] = i;
        keys_[i] = OrderedKeyOf(keys[i]);
      }
    });
    if (IsShort()) return done ? Status() : Stopped();
    const auto is_less = [this](std::int64_t a, std::int64_t b) {
      return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b;
    };
    done = done && PacedSort(is_less, 2, pace).Sort(order_, order_ + count) &&
           pace.For(count, 2, [&](std::int64_t i, std::int64_t end) {
             for (; i < end; ++i) keys_[i] = OrderedKeyOf(keys[order_[i]]);
           });
    return done ? Status() : Stopped();
  }
  static void Declare(std::int64_t count, std::int64_t element_bytes, WorkspaceSizes& sizes) {
    count = std::max<std::int64_t>(1, count);
    sizes.Take(count, sizeof(std::int64_t));
    sizes.Take(count, std::max<std::int64_t>(element_bytes, sizeof(std::int32_t)));
  }

  std::int64_t work() const {
    return 2 + (IsShort() ? count_ : 2 * std::bit_width(static_cast<std::uint64_t>(count_)));
  }

  // places[i] is the first place of x[i], or the number of keys if it is none of them.
  void Find(const T* x, std::int64_t elements, Key* places) const {
    if (!IsShort()) {
      for (std::int64_t i = 0; i < elements; ++i) places[i] = static_cast<Key>(PlaceOf(OrderedKeyOf(x[i])));
      return;
    }
    for (std::int64_t i = 0; i < elements; ++i) places[i] = static_cast<Key>(count_);
    for (std::int64_t k = count_; k-- > 0;) {
      const Key key = keys_[k], place = static_cast<Key>(k);
      for (std::int64_t i = 0; i < elements; ++i) places[i] = OrderedKeyOf(x[i]) == key ? place : places[i];
    }
  }

 private:
  static constexpr std::int64_t kFew = 8;

  bool IsShort() const { return count_ <= kFew; }
  std::int64_t PlaceOf(Key key) const {
    std::int64_t first = 0;
    for (std::int64_t left = count_; left > 1;) {
      const std::int64_t half = left / 2;
      first += keys_[first + half - 1] < key ? half : 0;
      left -= half;
    }
    first += keys_[first] < key ? 1 : 0;
    return first < count_ && keys_[first] == key ? order_[first] : count_;
  }

  Key* keys_ = nullptr;            // in rising order, if they are many
  std::int64_t* order_ = nullptr;  // the place of each
  std::int64_t count_ = 0;
};

}  // namespace rewire::kernel::cpu
