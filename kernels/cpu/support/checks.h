// SPDX-License-Identifier: Apache-2.0
//
// Checks of a kernel's arguments. An error names the argument, what it is and what was expected. The checks
// are inline and cheap; making the message is not.
#pragma once

#include <bit>
#include <cstdint>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/vm/kernel/compiled.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cpu {

// The highest rank that kernels accept. The VM carries tensors of up to kMaxRank (base/max_rank.h)
// dimensions, which kernels of other libraries may want. The stock kernels keep their loop state on the stack
// for each dimension and operand, so they take less.
inline constexpr int kMaxKernelRank = 16;

// A shape on the stack.
class Dims {
 public:
  Dims() = default;
  explicit Dims(ShapeView dims) {
    for (std::int64_t dim : dims) push_back(dim);
  }
  int rank() const { return rank_; }
  std::int64_t operator[](int i) const { return dims_[i]; }
  std::int64_t& operator[](int i) { return dims_[i]; }
  // Call it at most kMaxKernelRank times; ranks are checked before.
  void push_back(std::int64_t dim) { dims_[rank_++] = dim; }
  void insert(int position, std::int64_t dim) {
    for (int i = rank_++; i > position; --i) dims_[i] = dims_[i - 1];
    dims_[position] = dim;
  }
  ShapeView view() const { return ShapeView(dims_, static_cast<std::size_t>(rank_)); }

 private:
  int rank_ = 0;
  std::int64_t dims_[kMaxKernelRank];
};

// True if all dimensions are at least 0 and their product, without zeros, is below kMostSize. Then no product
// of some of them overflows. For most shapes, counting bits is enough to tell.
[[gnu::cold]] REWIRE_KERNEL_INLINE bool IsModest(ShapeView dims);

// CheckHost for a tensor that its quick test does not let through.
[[gnu::cold]] REWIRE_KERNEL_INLINE Status CheckHostFully(const char* what, TensorView tensor);

// Checks that the tensor is on the host and has a rank and dimensions that kernels can handle. Elementwise
// kernels call it. CheckDense, which the others call, makes the same checks.
inline Status CheckHost(const char* what, const TensorView& tensor) {
  // The usual tensor has few dimensions of few bits each, so their product is below 2^56.
  std::uint64_t any = 0;
  for (const std::int64_t dim : tensor.dims()) any |= static_cast<std::uint64_t>(dim);
  const int most_bits = tensor.ndim() <= 2 ? 28 : 14;
  if (tensor.ndim() <= 4 && any >> most_bits == 0 && tensor.IsOnHost()) [[likely]]
    return Status();
  return CheckHostFully(what, tensor);
}

// CheckDense for a tensor that its quick test does not let through.
[[gnu::cold]] REWIRE_KERNEL_INLINE Status CheckDenseFully(const char* what, TensorView tensor);

// Checks that the tensor is on the host and contiguous. Every kernel except the elementwise ones checks every
// tensor with it.
inline Status CheckDense(const char* what, const TensorView& tensor) {
  // CheckHost and IsContiguous for the usual tensor, in one pass over its dimensions. Other tensors may pass
  // as well, but not here.
  const int rank = tensor.ndim();
  if (rank <= 4 && tensor.dl_tensor()->strides != nullptr && tensor.IsOnHost()) [[likely]] {
    std::uint64_t any = 0, step = 1;
    bool dense = true;
    for (int i = rank - 1; i >= 0; --i) {
      const auto dim = static_cast<std::uint64_t>(tensor.dim(i));
      dense &= (dim == 1) | (static_cast<std::uint64_t>(tensor.stride(i)) == step);
      any |= dim;
      step *= dim;
    }
    if (dense && any >> (rank <= 2 ? 28 : 14) == 0) [[likely]]
      return Status();
  }
  return CheckDenseFully(what, tensor);
}

inline Status CheckRank(const char* what, TensorView tensor, int rank) {
  if (tensor.ndim() == rank) [[likely]]
    return Status();
  return ValueError(what, " has shape ", tensor.dims(), ", expected rank ", rank);
}

inline Status CheckShape(const char* what, TensorView tensor, ShapeView expected) {
  if (tensor.dims() == expected) [[likely]]
    return Status();
  return ValueError(what, " has shape ", tensor.dims(), ", expected ", expected);
}

inline Status CheckSameDType(const char* what, TensorView tensor, const char* other_name, TensorView other) {
  if (SameDType(tensor.dtype(), other.dtype())) [[likely]]
    return Status();
  return TypeError(what, " has dtype ", DTypeName(tensor.dtype()), ", expected ", DTypeName(other.dtype()),
                   " as ", other_name);
}

// True if two contiguous tensors of these sizes share a byte.
inline bool OverlapOfSize(TensorView a, TensorView b, std::int64_t a_size, std::int64_t b_size) {
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a.raw_data());
  const auto b_begin = reinterpret_cast<std::uintptr_t>(b.raw_data());
  const auto a_bytes = static_cast<std::uintptr_t>(a_size * a.element_bytes());
  const auto b_bytes = static_cast<std::uintptr_t>(b_size * b.element_bytes());
  return a_bytes != 0 && b_bytes != 0 && a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}
inline bool Overlap(TensorView a, TensorView b) { return OverlapOfSize(a, b, a.size(), b.size()); }

// For kernels that read an input after they have begun to write.
inline Status CheckNoOverlap(const char* out_name, TensorView out, const char* name, TensorView input) {
  if (!Overlap(out, input)) [[likely]]
    return Status();
  return ValueError(out_name, " shares memory with ", name, "; this kernel cannot work in place");
}

// Maps an axis in [-rank, rank) to [0, rank).
inline Status NormalizeAxis(std::int64_t axis, int rank, int* normalized) {
  if (axis < -rank || axis >= rank) {
    return ValueError("axis is ", axis, ", expected at least ", -rank, " and less than ", rank);
  }
  *normalized = static_cast<int>(axis < 0 ? axis + rank : axis);
  return Status();
}

// Several checks in a row. After a failure the others are skipped.
//
//   if (Status s = Checks().Dense("x", x).Rank("x", x, 2).Take(); !s.ok()) return s;
class Checks {
 public:
  Checks& Host(const char* what, TensorView tensor) {
    if (status_.ok()) status_ = CheckHost(what, tensor);
    return *this;
  }
  Checks& Dense(const char* what, TensorView tensor) {
    if (status_.ok()) status_ = CheckDense(what, tensor);
    return *this;
  }
  Checks& Rank(const char* what, TensorView tensor, int rank) {
    if (status_.ok()) status_ = CheckRank(what, tensor, rank);
    return *this;
  }
  Checks& Shape(const char* what, TensorView tensor, ShapeView expected) {
    if (status_.ok()) status_ = CheckShape(what, tensor, expected);
    return *this;
  }
  Checks& SameDType(const char* what, TensorView tensor, const char* other_name, TensorView other) {
    if (status_.ok()) status_ = CheckSameDType(what, tensor, other_name, other);
    return *this;
  }
  // Checks two operands and a result: all three are contiguous, and `out` does not overlap the operands.
  Checks& Operands(const char* a_name, TensorView a, const char* b_name, TensorView b, TensorView out) {
    Dense(a_name, a).Dense(b_name, b).Dense("out", out);
    return NoOverlap("out", out, a_name, a).NoOverlap("out", out, b_name, b);
  }
  Checks& NoOverlap(const char* out_name, TensorView out, const char* name, TensorView input) {
    if (status_.ok()) status_ = CheckNoOverlap(out_name, out, name, input);
    return *this;
  }
  Status Take() { return std::move(status_); }

 private:
  Status status_;
};

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE bool IsModest(ShapeView dims) {
  std::int64_t volume = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return false;
    if (dim != 0) volume = Times(volume, dim);
  }
  return volume < kMostSize;
}

REWIRE_KERNEL_INLINE Status CheckHostFully(const char* what, TensorView tensor) {
  int bits = 0;
  for (const std::int64_t dim : tensor.dims())
    bits += static_cast<int>(std::bit_width(static_cast<std::uint64_t>(dim)));
  if (bits > 56 && !IsModest(tensor.dims())) {
    return ValueError(what, " has shape ", tensor.dims(),
                      ", whose product is too large even without its zeros");
  }
  if (!tensor.IsOnHost()) {
    return TypeError(what, " is on device type ", DeviceTypeOf(tensor.device()), ", expected host memory");
  }
  if (tensor.ndim() > kMaxKernelRank) {
    return ValueError(what, " has rank ", tensor.ndim(), ", expected at most ", kMaxKernelRank);
  }
  return Status();
}

REWIRE_KERNEL_INLINE Status CheckDenseFully(const char* what, TensorView tensor) {
  if (Status status = CheckHost(what, tensor); !status.ok()) return status;
  if (!tensor.IsContiguous()) [[unlikely]] {
    return ValueError(what, " has shape ", tensor.dims(), " and strides ",
                      ShapeView(tensor.dl_tensor()->strides, static_cast<std::size_t>(tensor.ndim())),
                      ", expected contiguous memory");
  }
  return Status();
}
#endif

}  // namespace rewire::kernel::cpu
