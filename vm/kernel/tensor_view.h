// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/tensor_view.h>.
//
// TensorView: a tensor argument as a kernel reads it. It wraps a pointer to a DLTensor. C++17.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>

#include "rewire/vm/kernel/compiled.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel {

// DLPack's code for booleans, which Debian's dlpack 0.6 does not define. A boolean is one byte, 0 or 1.
inline constexpr std::uint8_t kBoolCode = 6;

// The DLPack type of a C++ element type.
template <typename T>
constexpr DLDataType DTypeOf() {
  static_assert(std::is_arithmetic_v<T>, "element types are arithmetic");
  constexpr int kCode = std::is_same_v<T, bool>       ? kBoolCode
                        : std::is_floating_point_v<T> ? static_cast<int>(kDLFloat)
                        : std::is_signed_v<T>         ? static_cast<int>(kDLInt)
                                                      : static_cast<int>(kDLUInt);
  return DLDataType{kCode, sizeof(T) * 8, 1};
}

// A dtype as one number, so that compilers compare dtypes with one load.
constexpr std::uint32_t DTypeKey(DLDataType type) {
  return static_cast<std::uint32_t>(type.code) | static_cast<std::uint32_t>(type.bits) << 8 |
         static_cast<std::uint32_t>(type.lanes) << 16;
}
constexpr bool SameDType(DLDataType a, DLDataType b) { return DTypeKey(a) == DTypeKey(b); }

// Spells a dtype: "f32", "i64", "u8", "bool", "f8e4m3fn"; with lanes "f32x4".
REWIRE_KERNEL_INLINE std::string DTypeName(DLDataType type);

// One pointer; pass it by value. It borrows the tensor, which lives as long as the kernel's call. A const
// view does not protect the elements: the import declares whether a kernel may write them.
class TensorView {
 public:
  TensorView() = default;
  explicit TensorView(const DLTensor* tensor) : tensor_(tensor) {}

  const DLTensor* dl_tensor() const { return tensor_; }
  DLDataType dtype() const { return tensor_->dtype; }
  DLDevice device() const { return tensor_->device; }
  int ndim() const { return tensor_->ndim; }
  ShapeView dims() const { return ShapeView(tensor_->shape, static_cast<std::size_t>(tensor_->ndim)); }
  std::int64_t dim(int i) const { return tensor_->shape[i]; }
  // Distance in elements from one index to the next along dimension i. The tensor must have strides; the VM's
  // tensors always do.
  std::int64_t stride(int i) const { return tensor_->strides[i]; }

  // Number of elements; 1 for rank 0. Computed with unsigned numbers, because dimensions beside a 0 may be of
  // any size.
  std::int64_t size() const {
    std::uint64_t count = 1;
    for (int i = 0; i < ndim(); ++i) count *= static_cast<std::uint64_t>(dim(i));
    return static_cast<std::int64_t>(count);
  }
  std::int64_t element_bytes() const { return (std::int64_t{dtype().bits} * dtype().lanes + 7) / 8; }

  void* raw_data() const { return static_cast<char*>(tensor_->data) + tensor_->byte_offset; }
  // The caller must have checked the dtype.
  template <typename T>
  T* data() const {
    return static_cast<T*>(raw_data());
  }
  template <typename T>
  bool Is() const {
    return SameDType(dtype(), DTypeOf<T>());
  }

  // True if the tensor is row-major without gaps. Strides of dimensions of size 1 are ignored. A tensor
  // without elements is contiguous.
  bool IsContiguous() const {
    if (tensor_->strides == nullptr) return true;
    std::uint64_t expected = 1;
    bool matches = true;
    for (int i = ndim() - 1; i >= 0; --i) {
      if (dim(i) == 0) return true;
      if (dim(i) != 1 && static_cast<std::uint64_t>(stride(i)) != expected) matches = false;
      expected *= static_cast<std::uint64_t>(dim(i));
    }
    return matches;
  }
  // True if the CPU can read and write the memory directly.
  bool IsOnHost() const {
    const std::int32_t type = DeviceTypeOf(device());
    if (type == kDLCPU) return true;
    return type == kDLCUDAHost || type == kDLCUDAManaged || type == kDLROCMHost;
  }

 private:
  const DLTensor* tensor_ = nullptr;
};

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE std::string DTypeName(DLDataType type) {
  // DLPack's codes 10 to 17; each is one type.
  static constexpr const char* kNarrowFloats[] = {"f8e4m3fn",  "f8e4m3fnuz", "f8e5m2",   "f8e5m2fnuz",
                                                  "f8e8m0fnu", "f6e2m3fn",   "f6e3m2fn", "f4e2m1fn"};
  static constexpr const char* kPrefixes[] = {"i", "u", "f", "h", "bf", "c"};
  std::string name;
  if (type.code == kBoolCode && type.bits == 8) {
    name = "bool";
  } else if (type.code < sizeof(kPrefixes) / sizeof(kPrefixes[0])) {
    name = kPrefixes[type.code] + std::to_string(type.bits);
  } else if (type.code >= 10 && type.code <= 17) {
    name = kNarrowFloats[type.code - 10];
  } else {
    name = "dtype code " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits";
  }
  if (type.lanes != 1) name += "x" + std::to_string(type.lanes);
  return name;
}
#endif

}  // namespace rewire::kernel
