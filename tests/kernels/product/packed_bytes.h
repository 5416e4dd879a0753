// SPDX-License-Identifier: Apache-2.0
// Tensors of bytes for products by packed integer weights, and the weights as the kernels take them.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rewire/kernels/cpu/product/integer_panels.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/product/channels_last.h"

namespace rewire::test {

inline std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// All bytes, the largest and smallest ones often.
template <typename T>
HostTensor RandomBytes(Shape shape, std::uint32_t seed) {
  HostTensor tensor = HostTensor::Empty<T>(std::move(shape));
  std::uint32_t state = seed * 2654435761u + 1;
  for (T& value : tensor.elements<T>()) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t number = state >> 20;
    value = static_cast<T>(number % 4 == 0   ? 0x80
                           : number % 4 == 1 ? 0x7F
                           : number % 8 == 2 ? 0xFF
                                             : number / 8);
  }
  return tensor;
}

struct Packed {
  HostTensor w, sums;
};

inline Packed Pack(HostTensor& w, std::int64_t columns, std::int64_t depth, const char* order,
                   std::int64_t segments = 1) {
  Packed packed{HostTensor::Empty<std::int8_t>({kernel::cpu::PackedColumns(columns),
                                                segments * kernel::cpu::PaddedDepth(depth / segments)}),
                HostTensor::Empty<std::int32_t>({columns})};
  REQUIRE(Run("rewire.packed.pack_integers", {&w, &packed.w, &packed.sums},
              {{"order", order}, {"segments", segments}}) == "");
  return packed;
}

// As the packed kernels take a zero of weights.
template <typename W>
HostTensor Lowered(const HostTensor& zero) {
  HostTensor lowered = HostTensor::Empty<std::int8_t>(zero.shape());
  const auto from = zero.values<W>();
  for (std::size_t i = 0; i < from.size(); ++i)
    lowered.elements<std::int8_t>()[static_cast<std::int64_t>(i)] =
        static_cast<std::int8_t>(from[i] - (std::is_signed_v<W> ? 0 : 128));
  return lowered;
}

// With the channels first, or a filter's in front of its taps.
template <typename T>
HostTensor ChannelsFirst(HostTensor& last) {
  const Shape& dims = last.shape();
  HostTensor first = HostTensor::Empty<T>({dims[0], dims[3], dims[1], dims[2]});
  REQUIRE(Run("rewire.transpose", {&last, &first}, {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}}) == "");
  return first;
}

}  // namespace rewire::test
