// SPDX-License-Identifier: Apache-2.0
// A tensor that owns its elements, for calling kernels without a VM.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::test {

using Shape = std::vector<std::int64_t>;

class HostTensor {
 public:
  template <typename T>
  static HostTensor Of(Shape shape, const std::vector<T>& values) {
    HostTensor tensor = Empty<T>(std::move(shape));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = values[i];  // std::vector<bool> has no elements to copy from
      std::memcpy(tensor.bytes_.data() + i * sizeof(T), &value, sizeof(T));
    }
    return tensor;
  }
  // Filled with the byte 0xA5, so that an element that nobody writes shows. (Booleans too: no legal value.)
  template <typename T>
  static HostTensor Empty(Shape shape) {
    HostTensor tensor;
    tensor.dtype_ = kernel::DTypeOf<T>();
    tensor.SetShape(std::move(shape));
    tensor.bytes_.assign(static_cast<std::size_t>(tensor.size()) * sizeof(T), 0xA5);
    return tensor;
  }
  // Numbers that differ from one another, in [-1, 1): the same for the same seed.
  static HostTensor Random(Shape shape, std::uint32_t seed) {
    HostTensor tensor = Empty<float>(std::move(shape));
    std::uint32_t state = seed * 2654435761u + 1;
    for (float& value : tensor.elements<float>()) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    }
    return tensor;
  }

  // The same bytes as elements of another dtype, for types that C++ does not have.
  void SetDType(DLDataType dtype) { dtype_ = dtype; }

  // A view of the same elements with other dimensions and strides, for strided arguments.
  void SetView(Shape shape, Shape strides, std::uint64_t byte_offset = 0) {
    shape_ = std::move(shape);
    strides_ = std::move(strides);
    byte_offset_ = byte_offset;
  }

  std::int64_t size() const {
    return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1},
                           [](auto a, auto b) { return a * b; });
  }
  const Shape& shape() const { return shape_; }

  // Every element in memory order, whatever the view.
  template <typename T>
  std::vector<T> values() const {
    const auto* first = reinterpret_cast<const T*>(bytes_.data());
    return std::vector<T>(first, first + bytes_.size() / sizeof(T));
  }

  template <typename T>
  struct Elements {
    T* first;
    T* last;
    T* begin() const { return first; }
    T* end() const { return last; }
    T& operator[](std::int64_t i) const { return first[i]; }
  };
  template <typename T>
  Elements<T> elements() {
    auto* first = reinterpret_cast<T*>(bytes_.data());
    return {first, first + bytes_.size() / sizeof(T)};
  }

  // Valid until the tensor is changed or moved.
  DLTensor* dl() {
    tensor_ = DLTensor{bytes_.data(),   device_,     static_cast<int>(shape_.size()), dtype_, shape_.data(),
                       strides_.data(), byte_offset_};
    return &tensor_;
  }
  void set_device(DLDevice device) { device_ = device; }

 private:
  void SetShape(Shape shape) {
    shape_ = std::move(shape);
    strides_.assign(shape_.size(), 1);
    for (std::size_t i = shape_.size(); i-- > 1;) strides_[i - 1] = strides_[i] * shape_[i];
  }

  DLTensor tensor_{};
  DLDevice device_{kDLCPU, 0};
  DLDataType dtype_{};
  Shape shape_;
  Shape strides_;
  std::uint64_t byte_offset_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace rewire::test
