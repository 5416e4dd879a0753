// SPDX-License-Identifier: Apache-2.0
// Memory to bind outputs to, and values to compare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/vm/value.h"

namespace rewire::test {

// The elements of a tensor on the host, without gaps.
std::string ElementsOf(const TensorView& view);

// A value's contents as text that is equal for equal values; closures and storages by kind alone.
std::string Serialized(const Value& value);

// Strides of a tensor that takes every second element of its memory.
std::vector<std::int64_t> EverySecond(Span<const std::int64_t> shape);

// Bytes with a guard on both sides.
struct GuardedMemory {
  std::vector<unsigned char> block;
  unsigned char* data = nullptr;  // in the block, or the caller's own
  std::uint64_t bytes = 0;

  // `data` is 64-byte aligned but for `misalignment` bytes.
  void Take(std::uint64_t size, std::size_t misalignment);
  bool GuardsStand() const;
};

}  // namespace rewire::test
