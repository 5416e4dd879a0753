// SPDX-License-Identifier: Apache-2.0
//
// The first few elements of columns that lie beside each other, for many columns at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/indexing/ordered_key.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Keeps the first elements so far of some columns in order. An element comes before another if its key is
// greater, or if the keys are equal and it came earlier.
template <typename T>
class TopOfColumns {
 public:
  static constexpr std::int64_t kColumns = 16;
  static constexpr std::int64_t kMostKept = 32;
  using Key = OrderedKey<T>;  // its range also holds the positions, so that both have lanes of one size

  // `kept` is at most kMostKept. The smallest elements come first if `largest` is false.
  TopOfColumns(std::int64_t kept, bool largest) : kept_(kept), flip_(largest ? Key{0} : Key{-1}) {}

  // Takes rows [begin, end) of `columns` columns, at most kColumns; rows are `step` apart.
  void Add(const T* in, std::int64_t step, std::int64_t columns, std::int64_t begin, std::int64_t end) {
    WideLoop([this, in, step, columns, begin, end] {
      Key keys[kColumns] = {};
      for (std::int64_t row = begin; row < end; ++row) {
        const T* line = in + row * step;
        if (columns == kColumns) {
          for (std::int64_t c = 0; c < kColumns; ++c) keys[c] = OrderedKeyOf(line[c]) ^ flip_;
        } else {
          for (std::int64_t c = 0; c < columns; ++c) keys[c] = OrderedKeyOf(line[c]) ^ flip_;
        }
        if (row >= kept_) {
          Key any = 0;
          for (std::int64_t c = 0; c < kColumns; ++c) any |= keys[c] > keys_[kept_ - 1][c] ? 1 : 0;
          if (any == 0) continue;
        }
        Insert(keys, row);
      }
    });
  }
  std::int64_t position(std::int64_t place, std::int64_t column) const {
    return static_cast<std::int64_t>(positions_[place][column]);
  }

 private:
  // An element takes the place of the first one that it comes before. Those from there on move by one place.
  void Insert(const Key* given, std::int64_t row) {
    Key keys[kColumns], positions[kColumns], moves[kColumns] = {};
    std::copy_n(given, kColumns, keys);
    std::fill_n(positions, kColumns, static_cast<Key>(row));
    for (std::int64_t place = 0; place < std::min(kept_, row); ++place) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const Key key = keys_[place][c], position = positions_[place][c];
        moves[c] |= keys[c] > key ? Key{-1} : Key{0};
        const Key key_change = (keys[c] ^ key) & moves[c], change = (positions[c] ^ position) & moves[c];
        keys_[place][c] = key ^ key_change;
        positions_[place][c] = position ^ change;
        keys[c] ^= key_change;
        positions[c] ^= change;
      }
    }
    if (row >= kept_) return;
    std::copy_n(keys, kColumns, keys_[row]);
    std::copy_n(positions, kColumns, positions_[row]);
  }

  std::int64_t kept_;
  Key flip_;
  // Only the first `kept_` places are set. Clearing all of them would take longer than short columns do.
  Key keys_[kMostKept][kColumns];
  Key positions_[kMostKept][kColumns];
};

}  // namespace rewire::kernel::cpu
