// SPDX-License-Identifier: Apache-2.0
// The simulated NVRTC finds this for <cuda_runtime.h>: device_code.h has what kernels need of it.
#pragma once
