// SPDX-License-Identifier: Apache-2.0
//
// Calls of elementwise kernels on few elements. What Elementwise prepares for loops of any length takes
// longer than such a call. So the common one is tested for in registers, and its loop asks for no instruction
// set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/elementwise/elementwise.h"

namespace rewire::kernel::cpu {

inline constexpr std::uint64_t kFewElements = 64;

// The number of elements if all tensors are on the host, have one shape, are contiguous, and are the same or
// apart, and the elements are few. 0 in all other cases. All have elements of this size.
template <typename... Ins>
[[gnu::always_inline]] inline std::uint64_t CountFew(std::uint64_t element_bytes, TensorView out,
                                                     const Ins... in) {
  const int rank = out.ndim();
  if (rank > kMaxKernelRank || !out.IsOnHost() || !((in.ndim() == rank && in.IsOnHost()) && ...)) return 0;
  std::uint64_t size = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const std::int64_t dim = out.dim(i);
    if (!((in.dim(i) == dim) && ...)) return 0;
    const auto is_step = [&](TensorView tensor) {
      return tensor.dl_tensor()->strides == nullptr || static_cast<std::uint64_t>(tensor.stride(i)) == size;
    };
    if (dim != 1 && !(is_step(out) && ... && is_step(in))) return 0;
    if (static_cast<std::uint64_t>(dim) > kFewElements) return 0;
    size *= static_cast<std::uint64_t>(dim);
    if (size > kFewElements) return 0;
  }
  const auto is_same_or_apart = [&](TensorView tensor) {
    const auto begin = reinterpret_cast<std::uintptr_t>(out.raw_data());
    const auto other = reinterpret_cast<std::uintptr_t>(tensor.raw_data());
    const std::uint64_t bytes = size * element_bytes;
    return other == begin || (other - begin >= bytes && begin - other >= bytes);  // one of the two wraps
  };
  return (is_same_or_apart(in) && ...) ? size : 0;
}

// Groups are read before they are written, so compilers make vectors of them where the output is an input,
// too.
template <typename T, typename Op, typename... Ins>
[[gnu::noinline]] void RunFewLoop(const Op op, std::uint64_t count, T* out, const Ins*... in) {
  constexpr std::uint64_t kLanes = 16 / sizeof(T);
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    T lanes[kLanes];
    for (std::uint64_t k = 0; k < kLanes; ++k) lanes[k] = op(in[i + k]...);
    std::copy_n(lanes, kLanes, out + i);
  }
  for (; i < count; ++i) out[i] = op(in[i]...);
}

// Runs the operation if all elements are of type T, and few. Otherwise returns false and does nothing.
template <typename T, typename Op, typename... Ins>
[[gnu::always_inline]] inline bool RunOnFew(const Op& op, TensorView out, const Ins... in) {
  if (!(out.Is<T>() && ... && in.template Is<T>())) return false;
  const std::uint64_t count = CountFew(sizeof(T), out, in...);
  if (count == 0) return false;
  RunFewLoop(op, count, out.data<T>(), static_cast<const T*>(in.template data<T>())...);
  return true;
}

}  // namespace rewire::kernel::cpu
