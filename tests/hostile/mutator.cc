// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/mutator.h"

#include <algorithm>
#include <utility>

namespace rewire::hostile {
namespace {

// How many of a hundred changes are of a kind; the rest change code.
constexpr std::uint64_t kPercentTables = 40;
constexpr std::uint64_t kPercentSignatures = 6;
constexpr std::uint64_t kPercentSplices = 3;
// One mutant in so many has a damaged container.
constexpr std::uint64_t kOneInDamaged = 24;
// One mutant in so many is compressed: a damaged one before it is damaged, or after.
constexpr std::uint64_t kOneInCompressed = 12;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  Dice dice(a * 0x9E3779B97F4A7C15u + b);
  return dice.Next();
}

std::string Change(Program& program, const Pool& pool, Dice& dice) {
  std::uint64_t kind = dice.Below(100);
  if (kind < kPercentTables) return ChangeTables(program, pool, dice);
  kind -= kPercentTables;
  if (kind < kPercentSignatures) return ChangeSignatures(program, dice);
  kind -= kPercentSignatures;
  if (kind < kPercentSplices) {
    const Seed& other = dice.Pick(*pool.seeds);
    return Splice(program, other.program, dice) + " from " + other.name;
  }
  return ChangeCode(program, pool, dice);
}

}  // namespace

std::uint32_t AnyDType(Dice& dice) {
  // f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, f32x4, u1, i4, a handle.
  static const std::vector<std::uint32_t> kTypes = {0x12002, 0x14002, 0x11002, 0x11004, 0x10800, 0x11000,
                                                    0x12000, 0x14000, 0x10801, 0x11001, 0x12001, 0x14001,
                                                    0x10806, 0x14005, 0x42002, 0x10101, 0x10400, 0x14003};
  return dice.OneIn(24) ? static_cast<std::uint32_t>(dice.Interesting()) : dice.Pick(kTypes);
}

std::uint64_t ElementBytes(std::uint32_t dtype) {
  const std::uint64_t bits = (dtype >> 8 & 0xFF) * std::uint64_t{dtype >> 16};
  return std::max<std::uint64_t>((bits + 7) / 8, 1);
}

void ChangeDims(std::vector<std::int64_t>& dims, Dice& dice) {
  const std::size_t at = dice.Below(dims.size());
  switch (dice.Below(6)) {
    case 0:
      if (!dims.empty()) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 1:
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::int64_t>(dice.Below(4)));
      return;
    case 2:
      if (dims.size() > 1) std::swap(dims[at], dice.Pick(dims));
      return;
    case 3:
      if (!dims.empty()) dims[at] = dice.Interesting();
      return;
    default:
      if (!dims.empty()) dims[at] = static_cast<std::int64_t>(dice.Below(9));
  }
}

std::uint32_t Mutator::Changes(std::uint64_t number) const {
  Dice dice(Mix(number, 1));
  std::uint32_t changes = 1;
  while (changes < 8 && dice.Below(5) < 2) ++changes;
  return changes;
}

Mutant Mutator::Make(std::uint64_t number, const std::vector<bool>& without) const {
  Dice dice(Mix(number, 0));
  const Seed& seed = dice.Pick(*pool_.seeds);
  Mutant mutant;
  mutant.seed = seed.name;
  Program program = seed.program;
  const std::uint32_t changes = Changes(number);
  const bool damaged = dice.OneIn(kOneInDamaged);
  const auto left_out = [&](std::uint32_t change) { return change < without.size() && without[change]; };
  for (std::uint32_t change = 0; change < changes; ++change) {
    if (left_out(change) || (damaged && change == 0)) continue;
    // Numbers of its own, so that a change is the same whatever others do.
    Dice own(Mix(number, 2 + change));
    std::string what = Change(program, pool_, own);
    if (!what.empty()) mutant.what.push_back(std::move(what));
  }
  Container container = ToContainer(program);
  Dice wrapping(Mix(number, 1u << 20));
  const bool compressed = wrapping.OneIn(kOneInCompressed), damaged_inside = wrapping.OneIn(2);
  const auto compress = [&] {
    container = Compressed(container);
    mutant.what.emplace_back("compressed");
  };
  if (compressed && !damaged_inside) compress();
  if (damaged && !left_out(0)) {
    Dice own(Mix(number, 2));
    mutant.what.push_back(DamageContainer(container, own));
  }
  if (compressed && damaged_inside) compress();
  mutant.file = WriteContainer(container);
  return mutant;
}

}  // namespace rewire::hostile
