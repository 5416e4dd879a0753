// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/interval.h"

#include <algorithm>

namespace rewire {
namespace {

constexpr std::int64_t kNoLeast = Interval::kNoLeast;
constexpr std::int64_t kNoMost = Interval::kNoMost;

bool IsEndless(std::int64_t a) { return a == kNoLeast || a == kNoMost; }

std::int64_t EndOf(bool negative) { return negative ? kNoLeast : kNoMost; }

std::int64_t Multiply(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  std::int64_t product = 0;
  const bool fits = !IsEndless(a) && !IsEndless(b) && !__builtin_mul_overflow(a, b, &product);
  return fits ? product : EndOf((a < 0) != (b < 0));
}

// b is not 0.
std::int64_t Divide(std::int64_t a, std::int64_t b) {
  const bool negative = (a < 0) != (b < 0);
  if (IsEndless(b)) return negative && a != 0 ? -1 : 0;
  if (IsEndless(a)) return EndOf(negative);
  return a / b - (a % b != 0 && negative ? 1 : 0);
}

}  // namespace

Interval SumOf(Interval a, Interval b) {
  Interval sum;
  if (a.least == kNoLeast || b.least == kNoLeast || __builtin_add_overflow(a.least, b.least, &sum.least)) {
    sum.least = kNoLeast;
  }
  if (a.most == kNoMost || b.most == kNoMost || __builtin_add_overflow(a.most, b.most, &sum.most)) {
    sum.most = kNoMost;
  }
  return sum;
}

Interval ProductOf(Interval a, Interval b) {
  const auto [least, most] = std::minmax({Multiply(a.least, b.least), Multiply(a.least, b.most),
                                          Multiply(a.most, b.least), Multiply(a.most, b.most)});
  return {least, most};
}

// On either side of a divisor of 0 the extremes are at the corners.
Interval FloorQuotientOf(Interval a, Interval b) {
  Interval all = {kNoMost, kNoLeast};
  const auto add = [&](std::int64_t value) { all = {std::min(all.least, value), std::max(all.most, value)}; };
  if (b.least <= 0 && b.most >= 0) add(0);
  for (const Interval side : {Interval{b.least, std::min<std::int64_t>(b.most, -1)},
                              Interval{std::max<std::int64_t>(b.least, 1), b.most}}) {
    if (side.least > side.most) continue;
    for (const std::int64_t dividend : {a.least, a.most}) {
      add(Divide(dividend, side.least));
      add(Divide(dividend, side.most));
    }
  }
  return all;
}

Interval LargerOf(Interval a, Interval b) { return {std::max(a.least, b.least), std::max(a.most, b.most)}; }

Interval SmallerOf(Interval a, Interval b) { return {std::min(a.least, b.least), std::min(a.most, b.most)}; }

Interval EitherOf(Interval a, Interval b) { return {std::min(a.least, b.least), std::max(a.most, b.most)}; }

}  // namespace rewire
