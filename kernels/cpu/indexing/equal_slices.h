// SPDX-License-Identifier: Apache-2.0
// Groups of slices that are equal, found without putting all of them in order where they are single elements.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "rewire/kernels/cpu/indexing/slices.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// Groups are numbered as they appear.
template <typename T>
class EqualSlices {
 public:
  explicit EqualSlices(const Slices<T>& slices) : slices_(slices) {}

  // Takes the memory for Count.
  Status TakeForCount() {
    if (Status s = TakeTable(); !s.ok()) return s;
    return TakeList(&first_);
  }
  static bool DeclareCount(const UniqueAttributes& attributes, WorkspaceSizes& sizes) {
    return DeclareSlices(attributes, sizes, kListsForCount, TableSize, sizeof(std::uint32_t));
  }
  // How many groups there are.
  [[nodiscard]] bool Count(Pace& pace, std::int64_t* groups) {
    if (IsHashed() && Hash(nullptr, pace)) {
      *groups = groups_;
      return true;
    }
    if (pace.stopped() || !slices_.Sort(first_, pace)) return false;
    *groups = slices_.count == 0 ? 0 : 1;
    for (std::int64_t i = 1; i < slices_.count; ++i) {
      if (slices_.Compare(first_[i - 1], first_[i], pace) != 0) ++*groups;
      if (!pace.Spend(slices_.Work())) return false;
    }
    return true;
  }

  // Takes the memory for Find.
  Status TakeForFind() {
    if (Status s = TakeForCount(); !s.ok()) return s;
    for (std::int64_t** list : {&group_, &rank_, &order_}) {
      if (Status s = TakeList(list); !s.ok()) return s;
    }
    return Status();
  }
  static bool DeclareFind(const UniqueAttributes& attributes, WorkspaceSizes& sizes) {
    return DeclareSlices(attributes, sizes, kListsForFind, TableSize, sizeof(std::uint32_t));
  }
  // Finds the group of each slice, and with `ranks` also the rank of each group. Returns false if told to
  // stop.
  [[nodiscard]] bool Find(bool ranks, Pace& pace) {
    if (!IsHashed() || !Hash(group_, pace)) return !pace.stopped() && FindInOrder(pace);
    return !ranks || RankGroups(pace);
  }

  std::int64_t groups() const { return groups_; }
  std::int64_t group(std::int64_t slice) const { return group_[slice]; }
  std::int64_t first(std::int64_t group) const { return first_[group]; }  // its earliest slice
  std::int64_t rank(std::int64_t group) const { return rank_[group]; }

 private:
  static constexpr int kListsForCount = 1, kListsForFind = 4;

  // Twice as large as the number of groups can be, so that a search soon ends at an empty place.
  static std::int64_t TableSize(std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(Times(2, Plus(count, 8)))));
  }
  Status TakeTable() { return Workspace(TableSize(slices_.count), &table_); }
  Status TakeList(std::int64_t** list) { return Workspace(std::max<std::int64_t>(1, slices_.count), list); }

  bool IsHashed() const {
    return slices_.outer == 1 && slices_.inner == 1 &&
           slices_.count < std::numeric_limits<std::uint32_t>::max();
  }
  OrderedKey<T> KeyOf(std::int64_t slice) const { return OrderedKeyOf(slices_.data[slice]); }

  // The place in the table of a key, or the empty one where it belongs.
  std::int64_t PlaceOf(OrderedKey<T> key) {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
    auto place = static_cast<std::int64_t>((static_cast<std::uint64_t>(key) * kGoldenRatio) >> (64 - bits_));
    while (table_[place] != 0 && KeyOf(first_[table_[place] - 1]) != key) {
      place = (place + 1) & ((std::int64_t{1} << bits_) - 1);
      ++steps_;
    }
    return place;
  }

  // Sees each element once. The table grows with the number of groups, so that it stays in the caches where
  // they are few. Returns false if told to stop, and where so many keys lie in each other's way that sorting
  // is faster, as keys can that were made for it. `group` may be null.
  bool Hash(std::int64_t* group, Pace& pace) {
    groups_ = steps_ = 0;
    const std::int64_t count = slices_.count, most_steps = Plus(Times(4, count), 4096);
    if (!Grow(kFirstBits, pace)) return false;
    return pace.For(count, 4, [&](std::int64_t i, std::int64_t end) {
      for (; i < end && steps_ <= most_steps; ++i) {
        const OrderedKey<T> key = KeyOf(i);
        const std::int64_t place = PlaceOf(key);
        if (table_[place] == 0) {
          first_[groups_] = i;
          table_[place] = static_cast<std::uint32_t>(++groups_);
          if (group != nullptr) group[i] = groups_ - 1;
          if (groups_ * 2 > std::int64_t{1} << bits_ && !Grow(bits_ + 2, pace)) return;
        } else if (group != nullptr) {
          group[i] = table_[place] - 1;
        }
      }
    }) && steps_ <= most_steps;
  }
  static constexpr int kFirstBits = 10;
  bool Grow(int bits, Pace& pace) {
    bits_ = std::min(bits, std::countr_zero(static_cast<std::uint64_t>(TableSize(slices_.count))));
    if (!pace.Fill(table_, std::int64_t{1} << bits_, std::uint32_t{0})) return false;
    return pace.For(groups_, 4, [&](std::int64_t g, std::int64_t end) {
      for (; g < end; ++g) table_[PlaceOf(KeyOf(first_[g]))] = static_cast<std::uint32_t>(g + 1);
    });
  }

  bool RankGroups(Pace& pace) {
    if (!SortGroups(pace)) return false;
    return pace.For(groups_, 2, [this](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) rank_[order_[i]] = i;
    });
  }
  bool SortGroups(Pace& pace) {
    if constexpr (sizeof(T) <= 4) {
      const bool read = pace.For(groups_, 2, [this](std::int64_t g, std::int64_t end) {
        for (; g < end; ++g) order_[g] = KeyedPosition(KeyOf(first_[g]), g);
      });
      return read && PacedSort(PositionOrder(), 1, pace).Sort(order_, order_ + groups_) &&
             KeepPositions(order_, groups_, pace);
    } else {
      const auto is_less = [this](std::int64_t a, std::int64_t b) {
        return KeyOf(first_[a]) < KeyOf(first_[b]);
      };
      return Enumerate(order_, groups_, pace) && PacedSort(is_less, 1, pace).Sort(order_, order_ + groups_);
    }
  }

  // By putting all slices in order: equal ones follow each other, the earliest one first.
  bool FindInOrder(Pace& pace) {
    if (!slices_.Sort(order_, pace)) return false;
    std::int64_t groups = 0;
    for (std::int64_t i = 0; i < slices_.count; ++i) {
      const std::int64_t slice = order_[i];
      const bool begins = i == 0 || slices_.Compare(order_[i - 1], slice, pace) != 0;
      if (!pace.Spend(slices_.Work())) return false;
      group_[slice] = begins ? slice : group_[order_[i - 1]];  // its earliest slice, for now
      if (begins) rank_[slice] = groups++;
    }
    groups_ = 0;
    return pace.For(slices_.count, 4, [this](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        if (group_[i] != i) {
          group_[i] = group_[group_[i]];
          continue;
        }
        first_[groups_] = i;
        rank_[groups_] = rank_[i];
        group_[i] = groups_++;
      }
    });
  }

  Slices<T> slices_;
  std::uint32_t* table_ = nullptr;  // the number of a group plus 1; 0 is empty
  std::int64_t *first_ = nullptr, *group_ = nullptr, *rank_ = nullptr, *order_ = nullptr;
  std::int64_t groups_ = 0, steps_ = 0;
  int bits_ = kFirstBits;
};

}  // namespace rewire::kernel::cpu
