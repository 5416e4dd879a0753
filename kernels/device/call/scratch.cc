// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/call/scratch.h"

namespace rewire::kernel::device {

Scratch::~Scratch() {
  // Never the last reference: the VM holds one until the kernel returns.
  if (tensor_.v_obj != nullptr) __atomic_fetch_sub(&tensor_.v_obj->combined_ref_count, 1, __ATOMIC_RELEASE);
}

Status Scratch::Make(TensorView on, DLDataType dtype, std::int64_t count) {
  const std::int64_t shape = count > 0 ? count : 1;
  if (shape > kMostElements)
    return ValueError("the call needs scratch memory for ", shape, " elements, which is too much");
  const bool made = __rewire_kernel_api->new_tensor(dtype, 1, &shape, on.device(), &tensor_) == 0;
  return made ? Status() : Status::AlreadySet();
}

}  // namespace rewire::kernel::device
