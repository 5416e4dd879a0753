// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace rewire::bench {

// The CPUs that this process may run on.
std::vector<int> AllowedCpus();
// Keeps the calling thread on one of them.
void PinThread(int cpu);

}  // namespace rewire::bench
