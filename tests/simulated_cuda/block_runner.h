// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a simulated kernel on the calling thread: each CUDA thread that waits has a fiber.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/tests/simulated_cuda/device_image.h"

namespace rewire::simulated_cuda {

struct LaunchShape {
  SimulatedDim grid, block;
  std::size_t dynamic_shared = 0;
};

enum class KernelEnd { kDone, kTrapped, kFaulted, kStuck };

// `stuck`: some threads wait for others that never come, as at a barrier in a branch.
KernelEnd RunKernel(const SimulatedImage& image, const SimulatedKernel& kernel, const LaunchShape& shape,
                    void** arguments);

}  // namespace rewire::simulated_cuda
