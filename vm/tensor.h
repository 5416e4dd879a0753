// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/tensor.h>.
//
// Tensors as a host sees them. A TensorView describes memory that somebody else owns. A Tensor owns its
// memory.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/kernel/device_type.h"

struct DLManagedTensorVersioned;  // of DLPack 1.0 and later; used as a pointer only

namespace rewire {

template <typename T>
constexpr DLDataType DTypeOf() {
  static_assert(std::is_arithmetic_v<T>, "an element type is an integer, a floating-point number or bool");
  if constexpr (std::is_same_v<T, bool>) {
    return kBool8;
  } else {
    return MakeDType(std::is_floating_point_v<T> ? kFloat
                     : std::is_signed_v<T>       ? kInt
                                                 : kUInt,
                     8 * sizeof(T));
  }
}

inline constexpr DLDevice kHost = {kDLCPU, 0};

// Describes a tensor in the caller's memory: dtype, shape, strides and device. Shape and strides count
// elements, and strides may be negative.
//
// The view copies shape and strides but owns none of the memory. An empty view has no dtype and no data;
// every function that expects a tensor refuses it.
class REWIRE_API TensorView {
 public:
  TensorView() = default;
  // A contiguous tensor on the host. A view made from a pointer to const is read-only: it may be an input but
  // not an output.
  template <typename T>
  TensorView(T* data, std::initializer_list<std::int64_t> shape)
      : TensorView(const_cast<std::remove_const_t<T>*>(data), DTypeOf<std::remove_const_t<T>>(),
                   Span<const std::int64_t>(shape)) {
    read_only_ = std::is_const_v<T>;
  }
  // Empty `strides` mean contiguous in row-major order.
  TensorView(void* data, DLDataType dtype, Span<const std::int64_t> shape, DLDevice device = kHost,
             Span<const std::int64_t> strides = {}, std::uint64_t byte_offset = 0);
  // The same over memory that must not be written, given as a pointer to const: the view is read-only.
  template <typename T, typename = std::enable_if_t<std::is_const_v<T>>>
  TensorView(T* data, DLDataType dtype, Span<const std::int64_t> shape, DLDevice device = kHost,
             Span<const std::int64_t> strides = {}, std::uint64_t byte_offset = 0)
      : TensorView(const_cast<void*>(static_cast<const void*>(data)), dtype, shape, device, strides,
                   byte_offset) {
    read_only_ = true;
  }
  // Copies shape and strides out of `tensor`. The view is empty if the rank is negative or the shape is
  // missing.
  explicit TensorView(const DLTensor& tensor);
  TensorView(const TensorView& other);
  TensorView(TensorView&& other) noexcept;  // `other` is empty afterwards
  TensorView& operator=(const TensorView& other);

  const DLTensor& dl() const { return tensor_; }
  // Changes the memory that the view describes and keeps everything else. `data` is the address of the first
  // element.
  void MoveTo(void* data) {
    tensor_.data = data;
    tensor_.byte_offset = 0;
  }
  // The address of the first element: data plus byte_offset.
  void* data() const { return static_cast<char*>(tensor_.data) + tensor_.byte_offset; }
  DLDataType dtype() const { return tensor_.dtype; }
  Span<const std::int64_t> shape() const { return {tensor_.shape, static_cast<std::size_t>(tensor_.ndim)}; }
  DLDevice device() const { return tensor_.device; }
  bool read_only() const { return read_only_; }
  bool IsContiguous() const;
  // Number of elements; 1 for rank 0.
  std::int64_t size() const;
  // size() times the bytes of one element.
  std::uint64_t bytes() const;

 private:
  friend class Tensor;
  void Clear();
  void TakeDims(const std::int64_t* shape, const std::int64_t* strides, std::int32_t rank);

  static constexpr std::int32_t kInlineRank = 6;
  DLTensor tensor_{};
  bool read_only_ = false;
  std::int64_t inline_dims_[2 * kInlineRank];
  Array<std::int64_t> more_dims_;  // for ranks above kInlineRank
};

struct TensorObject;  // objects.h

// A counted reference to a tensor: either a result of a VM or a tensor made here. Copies share the memory.
// The reference may be released on any thread, also after the VM is gone.
class REWIRE_API Tensor {
 public:
  Tensor() = default;
  // Makes a tensor from the default allocator: contiguous, on the host, uninitialized. Errors:
  // kInvalidArgument, kOutOfMemory.
  static Result<Tensor> Make(DLDataType dtype, Span<const std::int64_t> shape);
  // Makes a tensor with a copy of the view's elements. The view must be on the host and may be strided.
  static Result<Tensor> CopyOf(const TensorView& view);
  // Takes over a DLPack tensor without copying. Its deleter runs on the thread that releases the last
  // reference. Ownership passes even on failure.
  //
  // Errors: kInvalidArgument if there is no tensor, or no memory for its shape. kUnsupported for a version
  // whose layout is unknown; nothing but the version is then read.
  static Result<Tensor> FromDLPack(DLManagedTensor* managed);
  static Result<Tensor> FromDLPack(DLManagedTensorVersioned* managed);
  // Refers to the caller's memory. `owner` is kept until the last reference is gone.
  static Result<Tensor> Wrap(const TensorView& view, std::shared_ptr<const void> owner);

  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Tensor& operator=(Tensor other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Tensor();

  explicit operator bool() const { return object_ != nullptr; }
  const DLTensor& dl() const;
  // A borrowed view, valid while this reference lives. It is read-only if the host must not write the tensor.
  TensorView view() const;
  // The address of the first element as T. Errors: kInvalidArgument if T is not the dtype or there is no
  // tensor.
  template <typename T>
  Result<T*> TryData() const {
    if (Status ok = CheckDType(DTypeOf<T>()); !ok) return Forward(ok);
    return reinterpret_cast<T*>(static_cast<char*>(dl().data) + dl().byte_offset);
  }
#if defined(__cpp_exceptions)
  // The same; throws Error.
  template <typename T>
  T* data() const {
    Result<T*> data = TryData<T>();
    if (!data) throw Error(data.error());
    return *data;
  }
#endif
  Span<const std::int64_t> shape() const { return {dl().shape, static_cast<std::size_t>(dl().ndim)}; }
  DLDataType dtype() const { return dl().dtype; }

  // New managed tensors that share the memory; the caller calls their deleter. Null if memory runs out.
  DLManagedTensor* ToDLPack() const;
  DLManagedTensorVersioned* ToDLPackVersioned() const;

 private:
  friend class Value;
  Status CheckDType(DLDataType wanted) const;
  explicit Tensor(TensorObject* object) : object_(object) {}  // takes over one reference
  TensorObject* object_ = nullptr;
};

}  // namespace rewire
