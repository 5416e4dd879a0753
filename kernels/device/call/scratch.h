// SPDX-License-Identifier: Apache-2.0
//
// Memory on a device for one call.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::device {

// Device code computes positions in 32 bits.
inline constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);

// The VM gives it to later work of the same stream, so it may be let go as
// soon as the work that uses it has been given. It counts against the VM's byte limit. The rows of kernels
// that take some have REWIRE_KERNEL_DEVICE_WORKSPACE, and DeclareWorkspace has one block for each.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  // On the device of the tensor `on`. At least one element.
  Status Make(TensorView on, DLDataType dtype, std::int64_t count);
  TensorView view() const { return TensorView(RewireTensorOf(&tensor_)); }

 private:
  RewireFFIAny tensor_{};
};

}  // namespace rewire::kernel::device
