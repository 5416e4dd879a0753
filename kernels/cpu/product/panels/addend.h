// SPDX-License-Identifier: Apache-2.0
//
// An addend is added to a product's sums besides the bias: another term of its output's shape.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Floats, or bf16, or nothing if both are null.
struct Addend {
  const float* floats = nullptr;
  const std::uint16_t* rounded = nullptr;

  Addend() = default;
  // A plain pointer is one to floats, and may be null.
  Addend(const float* of_floats) : floats(of_floats) {}  // NOLINT(google-explicit-constructor)
  explicit Addend(const std::uint16_t* of_bf16) : rounded(of_bf16) {}

  // The same from another element on.
  Addend From(std::int64_t at) const {
    Addend moved = *this;
    if (floats != nullptr) moved.floats += at;
    if (rounded != nullptr) moved.rounded += at;
    return moved;
  }
};

}  // namespace rewire::kernel::cpu
