// SPDX-License-Identifier: Apache-2.0
// The simulated NVRTC finds this for <cuda_fp16.h>: device_code.h has the type already.
#pragma once
