// SPDX-License-Identifier: Apache-2.0
//
// Operands of products of 8-bit integers into 32-bit sums, less their zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Checks a zero, which has one element, or one for each position along `axis`.
inline Status CheckZeroOf(const char* name, TensorView x, const char* zero_name,
                          const std::optional<TensorView>& zero, int axis) {
  if (!IsGiven(zero)) return Status();
  Checks checks;
  checks.Dense(zero_name, *zero).SameDType(zero_name, *zero, name, x);
  if (Status s = checks.Take(); !s.ok()) return s;
  const std::int64_t count = x.ndim() == 0 ? 1 : x.dim(axis);
  if (zero->size() == 1 || zero->dims() == ShapeView(&count, 1)) return Status();
  return ValueError(zero_name, " has shape ", zero->dims(), ", expected one element or [", count,
                    "] as axis ", axis, " of ", name, " with shape ", x.dims());
}

// The elements of an 8-bit tensor less their zero, as i32 in scratch memory: a tensor of the same shape.
class Widened {
 public:
  // `zero` has one element, or one for each position along `axis`.
  Status Make(const char* name, TensorView x, const char* zero_name, const std::optional<TensorView>& zero,
              int axis) {
    const bool has_zero = IsGiven(zero);
    const std::int64_t count = x.ndim() == 0 ? 1 : x.dim(axis);
    if (Status s = CheckZeroOf(name, x, zero_name, zero, axis); !s.ok()) return s;
    std::int32_t* to = nullptr;
    const std::int64_t size = x.size();
    if (Status s = Workspace(std::max<std::int64_t>(1, size), &to); !s.ok()) return s;
    tensor_ = *x.dl_tensor();
    tensor_.data = to;
    tensor_.byte_offset = 0;
    tensor_.strides = nullptr;
    tensor_.dtype = DTypeOf<std::int32_t>();
    const std::int64_t inner = x.ndim() == 0 ? 1 : Product(x.dims(), axis + 1, x.ndim());
    return ForType(Types<std::uint8_t, std::int8_t>(), name, x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.data<T>();
      const T* zeros = has_zero ? zero->data<T>() : nullptr;
      if (zeros != nullptr && zero->size() != 1) {
        return SerialFor(size, 4, [=](std::int64_t i, std::int64_t end) {
          for (; i < end; ++i) to[i] = std::int32_t{from[i]} - zeros[i / inner % count];
        });
      }
      const std::int32_t shift = zeros == nullptr ? 0 : zeros[0];
      return SerialFor(size, 1, [=](std::int64_t begin, std::int64_t end) {
        WideLoop([=] {
          for (std::int64_t i = begin; i < end; ++i) to[i] = std::int32_t{from[i]} - shift;
        });
      });
    });
  }
  TensorView view() const { return TensorView(&tensor_); }

 private:
  DLTensor tensor_{};
};

// Both operands of a kernel, widened.
inline bool DeclareWidened(WorkspaceSizes& sizes) {
  for (const std::int32_t i : {0, 1}) {
    const DLTensor* tensor = sizes.Tensor(i);
    if (tensor == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, SizeOf(tensor)), sizeof(std::int32_t));
  }
  return true;
}

}  // namespace rewire::kernel::cpu
