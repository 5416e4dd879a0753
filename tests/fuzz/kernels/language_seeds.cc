// SPDX-License-Identifier: Apache-2.0
// Calls of the kernels that language models are made of.
#include "rewire/tests/fuzz/kernels/seeds.h"

namespace rewire::test {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr DLDataType kF32{kDLFloat, 32, 1}, kF16{kDLFloat, 16, 1}, kI64{kDLInt, 64, 1}, kU8{kDLUInt, 8, 1};

Argument Filled(Dice& dice, DLDataType dtype, Shape shape) {
  Argument argument;
  argument.dtype = dtype;
  argument.shape = std::move(shape);
  argument.seed = dice.Next();
  argument.fill = dice.OneIn(2) ? Fill::kOrdinary : Fill::kSmall;
  return argument;
}
Argument Counts(Dice& dice, Shape values) {
  Argument argument = Filled(dice, kI64, {static_cast<std::int64_t>(values.size())});
  argument.values = std::move(values);
  return argument;
}

void Blocked(const std::string& part, Dice& dice, Call* call) {
  const std::int64_t columns = 1 + dice.Below(40), panels = (columns + 15) / 16, blocks = 1 + dice.Below(4);
  const std::int64_t block = 8 * (1 + dice.Below(4)), bits = dice.OneIn(2) ? 4 : 8, rows = dice.Below(9);
  const std::int64_t depth = blocks * block;
  const Shape terms = {panels, blocks, 16};
  const DLDataType scale = dice.OneIn(2) ? kF16 : kF32;
  call->attributes = {{"columns", columns}};
  if (part != "pack_scales") call->attributes.emplace_back("bits", bits);
  if (part == "pack") {
    call->arguments = {Filled(dice, kU8, {columns, depth * bits / 8}),
                       Filled(dice, kU8, {panels, depth * 2 * bits})};
  } else if (part == "pack_scales") {
    call->arguments = {Filled(dice, kF32, {columns, blocks}), Filled(dice, scale, terms)};
  } else if (part == "pack_offsets") {
    call->arguments = {Filled(dice, scale, {columns, blocks}),
                       Filled(dice, kU8, {columns, (blocks * bits + 7) / 8}), Filled(dice, kF32, terms)};
  } else {
    call->attributes.emplace_back("block", block);
    call->attributes.emplace_back("bytes", dice.Below(2));
    call->arguments = {
        Filled(dice, kF32, {rows, depth}),  Filled(dice, kU8, {panels, depth * 2 * bits}),
        Filled(dice, scale, terms),         Filled(dice, kF32, dice.OneIn(2) ? terms : Shape{0}),
        Filled(dice, kF32, {columns}),      Filled(dice, kF32, {rows, columns}),
        Filled(dice, kF32, {rows, columns})};
  }
}

void Attention(Dice& dice, Call* call) {
  const std::int64_t batch = 1 + dice.Below(2), groups = 1 + dice.Below(2),
                     heads = groups * (1 + dice.Below(3));
  const std::int64_t length = dice.Below(9), keys = dice.Below(80), size = 1 + dice.Below(40),
                     width = 1 + dice.Below(40);
  const bool joined = dice.OneIn(2);
  call->attributes = {{"left", dice.Below(9) - 1}, {"right", dice.Below(9) - 1}};
  call->arguments = {
      Filled(dice, kF32, joined ? Shape{batch, length, heads * size} : Shape{batch, heads, length, size}),
      Filled(dice, kF32, {batch, groups, keys, size}),
      Filled(dice, kF32, {batch, groups, keys, width}),
      Counts(dice, Shape(static_cast<std::size_t>(batch), dice.Below(90) - 4)),
      Counts(dice, {dice.Below(90)}),
      Filled(dice, kF32, {heads, 1, keys}),
      Filled(dice, kF32, joined ? Shape{batch, length, heads * width} : Shape{batch, heads, length, width})};
}

void Append(Dice& dice, Call* call) {
  const std::int64_t heads = 1 + dice.Below(3), length = dice.Below(4), size = 1 + dice.Below(20);
  const Shape cache = {2, heads, 8, size};
  call->arguments = {
      Filled(dice, kF32, cache),
      Filled(dice, kF32, dice.OneIn(2) ? Shape{2, length, heads * size} : Shape{2, heads, length, size}),
      Counts(dice, {dice.Below(6), dice.Below(6)}), Filled(dice, kF32, cache)};
}

void Rotary(Dice& dice, Call* call) {
  const std::int64_t heads = 1 + dice.Below(3), length = 1 + dice.Below(4), half = 1 + dice.Below(9);
  const std::int64_t size = 2 * half + dice.Below(3);
  const bool joined = dice.OneIn(2);
  const Shape x = joined ? Shape{1, length, heads * size} : Shape{1, heads, length, size};
  call->attributes = {{"heads", heads}, {"interleaved", dice.Below(2)}};
  Argument positions = Counts(dice, Shape(static_cast<std::size_t>(length), dice.Below(6)));
  positions.shape = {1, length};
  call->arguments = {Filled(dice, kF32, x), Filled(dice, kF32, {5, half}), Filled(dice, kF32, {5, half}),
                     positions, Filled(dice, kF32, x)};
}

}  // namespace

bool LanguageSeedOf(const std::string& name, Dice& dice, Call* call) {
  if (name.rfind("blocked.", 0) == 0) return Blocked(name.substr(8), dice, call), true;
  if (name == "attention") return Attention(dice, call), true;
  if (name == "cache.append") return Append(dice, call), true;
  if (name == "rotary") return Rotary(dice, call), true;
  return false;
}

}  // namespace rewire::test
