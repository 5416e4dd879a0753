// SPDX-License-Identifier: Apache-2.0
// Tensors as a host sees them: TensorView describes memory that somebody else owns; Tensor owns.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "base/array.h"
#include "base/dtype.h"
#include "base/export.h"
#include "base/span.h"
#include "base/status.h"

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

// Describes a tensor in the caller's memory: dtype, shape (elements), strides (elements, may be negative),
// device. Holds its own copy of shape and strides, nothing of the memory.
class REWIRE_API TensorView {
 public:
  TensorView() = default;
  // Contiguous, on the host. From a pointer to const the view is read-only: good for inputs, refused for
  // outputs.
  template <typename T>
  TensorView(T* data, std::initializer_list<std::int64_t> shape)
      : TensorView(const_cast<std::remove_const_t<T>*>(data), DTypeOf<std::remove_const_t<T>>(),
                   Span<const std::int64_t>(shape)) {
    read_only_ = std::is_const_v<T>;
  }
  // `strides` empty: contiguous in row-major order.
  TensorView(void* data, DLDataType dtype, Span<const std::int64_t> shape, DLDevice device = kHost,
             Span<const std::int64_t> strides = {}, std::uint64_t byte_offset = 0);
  // Copies shape and strides out of `tensor`.
  explicit TensorView(const DLTensor& tensor);
  TensorView(const TensorView& other);
  TensorView(TensorView&& other) noexcept;  // which then has rank 0
  TensorView& operator=(const TensorView& other);

  const DLTensor& dl() const { return tensor_; }
  // From now on describes other memory in the same form; `data` is the first element.
  void MoveTo(void* data) {
    tensor_.data = data;
    tensor_.byte_offset = 0;
  }
  // The first element: data plus byte_offset.
  void* data() const { return static_cast<char*>(tensor_.data) + tensor_.byte_offset; }
  DLDataType dtype() const { return tensor_.dtype; }
  Span<const std::int64_t> shape() const { return {tensor_.shape, static_cast<std::size_t>(tensor_.ndim)}; }
  DLDevice device() const { return tensor_.device; }
  bool read_only() const { return read_only_; }
  bool IsContiguous() const;
  // Elements; 1 for rank 0.
  std::int64_t size() const;
  // size() times the bytes of an element.
  std::uint64_t bytes() const;

 private:
  friend class Tensor;
  void TakeDims(const std::int64_t* shape, const std::int64_t* strides, std::int32_t rank);

  static constexpr std::int32_t kInlineRank = 6;
  DLTensor tensor_{};
  bool read_only_ = false;
  std::int64_t inline_dims_[2 * kInlineRank];
  Array<std::int64_t> more_dims_;  // for ranks above kInlineRank
};

struct TensorObject;  // objects.h

// A counted reference to a tensor: a result of a VM, or one made here. Copies share the memory. May be
// released on any thread, after the VM too.
class REWIRE_API Tensor {
 public:
  Tensor() = default;
  // New, contiguous, on the host, uninitialised, from the default allocator. kInvalidArgument, kOutOfMemory.
  static Result<Tensor> Make(DLDataType dtype, Span<const std::int64_t> shape);
  // A new tensor with the view's elements (the view must be on the host; strides are followed).
  static Result<Tensor> CopyOf(const TensorView& view);
  // Takes over a DLPack tensor without copying; its deleter runs when the last reference goes, on that
  // thread. Ownership passes also on failure.
  static Result<Tensor> FromDLPack(DLManagedTensor* managed);
  static Result<Tensor> FromDLPack(DLManagedTensorVersioned* managed);
  // Refers to the caller's memory; `owner` is kept until the last reference goes.
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
  // Borrowed: valid while this reference lives. Read-only where the host may not write the tensor.
  TensorView view() const;
  // The first element as T; null when T is not the dtype.
  template <typename T>
  T* data() const {
    return dl().dtype == DTypeOf<T>() ? reinterpret_cast<T*>(static_cast<char*>(dl().data) + dl().byte_offset)
                                      : nullptr;
  }
  Span<const std::int64_t> shape() const { return {dl().shape, static_cast<std::size_t>(dl().ndim)}; }
  DLDataType dtype() const { return dl().dtype; }

  // New managed tensors that share the memory; the caller calls their deleter. Null when memory runs out.
  DLManagedTensor* ToDLPack() const;
  DLManagedTensorVersioned* ToDLPackVersioned() const;

 private:
  friend class Value;
  explicit Tensor(TensorObject* object) : object_(object) {}  // takes over one reference
  TensorObject* object_ = nullptr;
};

}  // namespace rewire
