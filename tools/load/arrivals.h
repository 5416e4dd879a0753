// SPDX-License-Identifier: Apache-2.0
// When requests arrive in an open loop.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>

namespace rewire::tools {

// A Poisson process: the times between arrivals are exponential and independent of each other. One seed gives
// the same arrivals on every machine.
class PoissonArrivals {
 public:
  PoissonArrivals(double rate, std::chrono::nanoseconds end, std::uint64_t seed)
      : mean_nanoseconds_(1e9 / rate), end_(static_cast<double>(end.count())), random_(seed) {}

  // The next arrival after the start of the plan, or nothing once the plan has ended.
  std::optional<std::chrono::nanoseconds> Next() {
    // 53 random bits: (0, 1], of which the logarithm is finite.
    const double unit = (static_cast<double>(random_() >> 11) + 1) * 0x1p-53;
    at_ -= mean_nanoseconds_ * std::log(unit);
    if (at_ >= end_) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(at_));
  }

 private:
  double mean_nanoseconds_, end_, at_ = 0;
  std::mt19937_64 random_;
};

}  // namespace rewire::tools
