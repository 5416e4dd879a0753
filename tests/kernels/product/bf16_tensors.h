// SPDX-License-Identifier: Apache-2.0
// Tensors of bf16 for tests of products.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>

#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {

using kernel::cpu::BFloat16;

// The numbers as bf16 has them.
inline HostTensor Rounded(const HostTensor& tensor) {
  HostTensor rounded = HostTensor::Empty<float>(tensor.shape());
  const auto values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    rounded.elements<float>()[static_cast<std::int64_t>(i)] = static_cast<float>(BFloat16(values[i]));
  return rounded;
}

// The same numbers as elements of bf16.
inline HostTensor Halves(const HostTensor& tensor) {
  HostTensor halves = HostTensor::Empty<BFloat16>(tensor.shape());
  const auto values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    halves.elements<BFloat16>()[static_cast<std::int64_t>(i)] = BFloat16(values[i]);
  return halves;
}

inline void CheckSameBits(const HostTensor& out, const HostTensor& expected) {
  const auto values = out.values<BFloat16>(), wanted = expected.values<BFloat16>();
  REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].bits != wanted[i].bits) FAIL("element " << i << " has bits " << values[i].bits);
  }
}

template <typename T>
HostTensor PackedAs(HostTensor& w, std::int64_t columns, std::int64_t depth, const char* order) {
  HostTensor packed = HostTensor::Empty<T>({kernel::cpu::PackedColumns(columns), depth});
  REQUIRE(Run("rewire.packed.pack", {&w, &packed}, {{"order", order}}) == "");
  return packed;
}

}  // namespace rewire::test
