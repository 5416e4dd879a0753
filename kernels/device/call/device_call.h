// SPDX-License-Identifier: Apache-2.0
//
// Kernels of devices share these: checks of their arguments, and the launch of device code on the running
// VM's stream.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/device/call/programs.h"
#include "rewire/kernels/device/call/scratch.h"
#include "rewire/kernels/device/code/arguments.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::kernel::device {

using cpu::Dims;

// Checks that a tensor is contiguous, on a device, and neither too large nor of too high a rank.
Status CheckOnDevice(const char* what, TensorView tensor);
// Whether a tensor is contiguous, and has the device and shape of another one, which CheckOnDevice has
// checked.
inline bool IsDenseLike(TensorView tensor, TensorView checked) {
  const DLTensor& a = *tensor.dl_tensor();
  const DLTensor& b = *checked.dl_tensor();
  if (a.ndim != b.ndim || !IsSameDevice(a.device, b.device) || a.strides == nullptr) return false;
  std::int64_t step = 1;
  for (int i = a.ndim - 1; i >= 0; --i) {
    if (a.shape[i] != b.shape[i] || (a.strides[i] != step && a.shape[i] != 1)) return false;
    step *= a.shape[i];
  }
  return true;
}
// Collects the first failure of several checks.
class DeviceChecks {
 public:
  DeviceChecks& On(const char* what, TensorView tensor) { return Keep(CheckOnDevice(what, tensor)); }
  // On the device of another tensor.
  DeviceChecks& Beside(const char* what, TensorView tensor, TensorView other);
  DeviceChecks& Shape(const char* what, TensorView tensor, ShapeView expected) {
    return Keep(cpu::CheckShape(what, tensor, expected));
  }
  // The tensor must be of float32 or float16.
  DeviceChecks& Real(const char* what, TensorView tensor);
  DeviceChecks& SameDType(const char* what, TensorView tensor, const char* other_name, TensorView other) {
    return Keep(cpu::CheckSameDType(what, tensor, other_name, other));
  }
  Status Take() { return std::move(status_); }

 private:
  DeviceChecks& Keep(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return *this;
  }
  Status status_;
};

// float32 or float16, which has been checked.
Form RealForm(TensorView tensor);
// By the size of an element, for code that moves elements.
Status MoveForm(const char* what, TensorView tensor, Form* form);

// The elements of a tensor that DeclareWorkspace is shown.
inline std::int64_t DeclaredSize(const DLTensor& tensor) {
  return cpu::Product(ShapeView(tensor.shape, static_cast<std::size_t>(tensor.ndim)), 0, tensor.ndim);
}

// An optional argument; one without elements is left out, as on the CPU.
inline std::optional<TensorView> Given(const std::optional<TensorView>& argument) {
  return cpu::IsGiven(argument) ? argument : std::nullopt;
}

// One launch. Arguments in the order of the device code. Addresses of tensors have their byte_offset added.
class Call {
 public:
  // `on`: a tensor on the device.
  Call(TensorView on, Program program, Form form, const char* kernel)
      : device_(on.device()), program_(program), form_(form), kernel_(kernel) {}

  Call& Tensor(TensorView tensor);
  // A missing tensor: an address that the device code does not use.
  Call& Optional(const std::optional<TensorView>& tensor, TensorView instead) {
    return Tensor(tensor ? *tensor : instead);
  }
  template <typename T>
  Call& Value(const T& value) {
    static_assert(sizeof(T) <= kMostBytes && sizeof(T) % 4 == 0);
    RewireLaunchArgument& argument = arguments_[count_++];
    argument.kind = REWIRE_LAUNCH_VALUE;
    argument.bytes = sizeof(T);
    std::memcpy(bytes_ + used_, &value, sizeof(T));
    argument.u.value = bytes_ + used_;
    used_ += sizeof(T);
    return *this;
  }
  // A value that stays where it is until the launch has been made. It is not copied before.
  template <typename T>
  Call& Borrowed(const T& value) {
    RewireLaunchArgument& argument = arguments_[count_++];
    argument.kind = REWIRE_LAUNCH_VALUE;
    argument.bytes = sizeof(T);
    argument.u.value = &value;
    return *this;
  }
  Call& Int(std::int64_t value) { return Value(static_cast<std::int32_t>(value)); }

  // `count` threads in groups of 64. Does nothing for none.
  Status Each(std::int64_t count);
  // Groups of 64 threads, one for each row.
  Status Rows(std::int64_t rows);
  Status Groups(std::int64_t x, std::int64_t y, std::int64_t z, std::uint32_t threads_x,
                std::uint32_t threads_y);

 private:
  static constexpr std::uint32_t kMostArguments = 12;
  static constexpr std::size_t kMostBytes = 512;

  DLDevice device_;
  Program program_;
  Form form_;
  const char* kernel_;
  // Not cleared: a call writes what it uses, and clearing would take as long as the rest.
  RewireLaunchArgument arguments_[kMostArguments];
  std::uint32_t count_ = 0;
  alignas(8) unsigned char bytes_[kMostBytes];
  std::size_t used_ = 0;
};

}  // namespace rewire::kernel::device
