// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere, and the values that programs most often get wrong.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace rewire::hostile {

// The sum, wrapped around.
inline std::int64_t Plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// SplitMix64.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }
  // In [0, limit); 0 for a limit of 0.
  std::uint64_t Below(std::uint64_t limit) { return limit == 0 ? 0 : Next() % limit; }
  // True once in `times`.
  bool OneIn(std::uint64_t times) { return Below(times) == 0; }
  template <typename T>
  T& Pick(std::vector<T>& items) {
    return items[Below(items.size())];
  }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(items.size())];
  }

  // Small numbers, powers of two and their neighbors, the ends of the types.
  std::int64_t Interesting() {
    const auto near = static_cast<std::int64_t>(Below(3)) - 1;
    switch (Below(8)) {
      case 0:
      case 1:
        return static_cast<std::int64_t>(Below(5));
      case 2:
        return static_cast<std::int64_t>(Below(40)) - 20;
      case 3:
        return Plus(static_cast<std::int64_t>(std::uint64_t{1} << Below(64)), near);
      case 4:
        return Plus(std::numeric_limits<std::int64_t>::min(), near);
      case 5:
        return (std::int64_t{1} << 31) + near;
      case 6:
        return static_cast<std::int64_t>(Below(1 << 16));
      default:
        return -static_cast<std::int64_t>(std::uint64_t{1} << Below(63));
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace rewire::hostile
