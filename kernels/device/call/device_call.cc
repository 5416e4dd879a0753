// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {
namespace {

constexpr std::uint32_t kThreads = 64;  // of a group

bool IsFloat(TensorView tensor, int bits) {
  const DLDataType dtype = tensor.dtype();
  return dtype.code == kDLFloat && dtype.bits == bits && dtype.lanes == 1;
}

}  // namespace

Status CheckOnDevice(const char* what, TensorView tensor) {
  if (tensor.IsOnHost()) return TypeError(what, " is in memory of the host, expected memory of a device");
  if (tensor.ndim() > REWIRE_DEVICE_RANK) {
    return ValueError(what, " has rank ", tensor.ndim(), ", expected at most ", REWIRE_DEVICE_RANK);
  }
  std::int64_t size = 1;
  for (const std::int64_t dim : tensor.dims()) {
    if (dim < 0 || dim > kMostElements || size * dim > kMostElements) {
      return ValueError(what, " has shape ", tensor.dims(), ", expected less than 2^31 elements");
    }
    size *= dim == 0 ? 1 : dim;
  }
  if (!tensor.IsContiguous()) return ValueError(what, " is strided, expected a contiguous tensor");
  return Status();
}

DeviceChecks& DeviceChecks::Beside(const char* what, TensorView tensor, TensorView other) {
  Keep(CheckOnDevice(what, tensor));
  const DLDevice a = tensor.device();
  const DLDevice b = other.device();
  if (status_.ok() && !IsSameDevice(a, b)) {
    status_ = ValueError(what, " is on another device than the output");
  }
  return *this;
}

DeviceChecks& DeviceChecks::Real(const char* what, TensorView tensor) {
  if (status_.ok() && !IsFloat(tensor, 32) && !IsFloat(tensor, 16)) {
    status_ = TypeError(what, " is ", DTypeName(tensor.dtype()), ", expected f32 or f16");
  }
  return *this;
}

Form RealForm(TensorView tensor) { return IsFloat(tensor, 16) ? Form::kF16 : Form::kF32; }

Status MoveForm(const char* what, TensorView tensor, Form* form) {
  const DLDataType dtype = tensor.dtype();
  switch ((dtype.bits * dtype.lanes + 7) / 8) {
    case 1:
      *form = Form::kBytes1;
      return Status();
    case 2:
      *form = Form::kBytes2;
      return Status();
    case 4:
      *form = Form::kBytes4;
      return Status();
    case 8:
      *form = Form::kBytes8;
      return Status();
    default:
      return TypeError(what, " is ", DTypeName(dtype), ", expected elements of 1, 2, 4 or 8 bytes");
  }
}

Call& Call::Tensor(TensorView tensor) {
  RewireLaunchArgument& argument = arguments_[count_++];
  argument.kind = REWIRE_LAUNCH_ADDRESS;
  const DLDataType dtype = tensor.dtype();
  const std::int64_t bytes = (tensor.size() * (std::int64_t{dtype.bits} * dtype.lanes) + 7) / 8;
  argument.bytes = bytes >> 32 == 0 ? static_cast<std::uint32_t>(bytes) : 0;
  argument.u.address = const_cast<void*>(tensor.raw_data());
  return *this;
}

Status Call::Each(std::int64_t count) {
  return count == 0 ? Status() : Groups((count + kThreads - 1) / kThreads, 1, 1, kThreads, 1);
}

Status Call::Rows(std::int64_t rows) { return rows == 0 ? Status() : Groups(rows, 1, 1, kThreads, 1); }

Status Call::Groups(std::int64_t x, std::int64_t y, std::int64_t z, std::uint32_t threads_x,
                    std::uint32_t threads_y) {
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (__rewire_kernel_api->device(device_, &api, &stream) != 0) return Status::AlreadySet();
  RewireLaunch launch{};
  if (Status s = FindKernel(*api, device_, program_, form_, kernel_, &launch.kernel); !s.ok()) return s;
  launch.groups[0] = static_cast<std::uint32_t>(x);
  launch.groups[1] = static_cast<std::uint32_t>(y);
  launch.groups[2] = static_cast<std::uint32_t>(z);
  launch.group_threads[0] = threads_x;
  launch.group_threads[1] = threads_y;
  launch.group_threads[2] = 1;
  launch.argument_count = count_;
  launch.arguments = arguments_;
  if (api->launch(api->context, device_, &launch, stream) == REWIRE_DEVICE_OK) return Status();
  return RuntimeError("device ", api->name, ":", device_.device_id, ": ", api->error(api->context));
}

}  // namespace rewire::kernel::device
