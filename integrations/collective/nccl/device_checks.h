// SPDX-License-Identifier: Apache-2.0
//
// Checks of the tensors that NCCL reads and writes.
#pragma once

#include <utility>

#include "rewire/integrations/collective/nccl/nccl_abi.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::collective {

// Several checks in a row. After a failure the others are skipped.
class CudaChecks {
 public:
  // The tensor is contiguous memory of a device of CUDA's.
  CudaChecks& On(const char* what, kernel::TensorView tensor) { return Keep(CheckOnCuda(what, tensor)); }
  // As On. It has the device of `other`, which has been checked, and its dtype.
  CudaChecks& Like(const char* what, kernel::TensorView tensor, const char* other_name,
                   kernel::TensorView other) {
    On(what, tensor);
    if (!IsSameDevice(tensor.device(), other.device()))
      Keep(kernel::ValueError(what, " is on another device than ", other_name));
    return Keep(kernel::cpu::CheckSameDType(what, tensor, other_name, other));
  }
  CudaChecks& Shape(const char* what, kernel::TensorView tensor, kernel::ShapeView expected) {
    return Keep(kernel::cpu::CheckShape(what, tensor, expected));
  }
  CudaChecks& NoOverlap(const char* out_name, kernel::TensorView out, const char* name,
                        kernel::TensorView input) {
    return Keep(kernel::cpu::CheckNoOverlap(out_name, out, name, input));
  }
  kernel::Status Take() { return std::move(status_); }

 private:
  static kernel::Status CheckOnCuda(const char* what, kernel::TensorView tensor) {
    if (DeviceTypeOf(tensor.device()) != kDLCUDA) {
      return kernel::TypeError(what, " is on device type ", DeviceTypeOf(tensor.device()),
                               ", expected memory of a device of CUDA's");
    }
    if (tensor.ndim() > kernel::cpu::kMaxKernelRank) {
      return kernel::ValueError(what, " has rank ", tensor.ndim(), ", expected at most ",
                                kernel::cpu::kMaxKernelRank);
    }
    if (!kernel::cpu::IsModest(tensor.dims()))
      return kernel::ValueError(what, " has shape ", tensor.dims(), ", whose product is too large");
    if (tensor.IsContiguous()) return kernel::Status();
    return kernel::ValueError(what, " is strided, expected contiguous memory");
  }
  CudaChecks& Keep(kernel::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return *this;
  }

  kernel::Status status_;
};

// The number by which NCCL knows a dtype of contract::kReducedDTypes. Fails for others.
inline kernel::Status NcclTypeOf(const char* what, kernel::TensorView tensor, int* type) {
  const DLDataType dtype = tensor.dtype();
  *type = -1;
  if (dtype.lanes == 1) {
    switch (dtype.code << 8 | dtype.bits) {
      case kDLFloat << 8 | 16:
        *type = kNcclFloat16;
        break;
      case kDLFloat << 8 | 32:
        *type = kNcclFloat32;
        break;
      case kDLFloat << 8 | 64:
        *type = kNcclFloat64;
        break;
      case kDLBfloat << 8 | 16:
        *type = kNcclBfloat16;
        break;
      case kDLInt << 8 | 32:
        *type = kNcclInt32;
        break;
      case kDLInt << 8 | 64:
        *type = kNcclInt64;
        break;
      case kDLUInt << 8 | 8:
        *type = kNcclUint8;
        break;
      default:
        break;
    }
  }
  if (*type >= 0) return kernel::Status();
  return kernel::TypeError(what, " has dtype ", kernel::DTypeName(dtype),
                           ", expected f32, f64, f16, bf16, i32, i64 or u8");
}

}  // namespace rewire::collective
