// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/vm/kernel/device_api.h"

namespace rewire::bench {

// Prints what device 0 of `api` reaches in copies and in products of Rewire's kernels, and on CUDA which
// share of the hardware's peak that is. `pcie` is the rate of the link in GB/s in one direction, 0 where
// nobody knows it.
void MeasurePeaks(const DeviceApi& api, const std::string& name, double pcie);

}  // namespace rewire::bench
