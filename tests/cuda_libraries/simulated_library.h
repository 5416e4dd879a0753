// SPDX-License-Identifier: Apache-2.0
// The simulated cuBLASLt and cuDNN share their kernels, given to the simulated driver's streams, counts, and
// failures on demand.
#pragma once

#include <cstddef>
#include <cstdint>

#define REWIRE_SIMULATED_EXPORT extern "C" __attribute__((visibility("default")))

namespace rewire::simulated_libraries {

inline constexpr int kFailed = 14;  // a status that both libraries call an error

// Counts a call. The status that it must fail with, or 0.
int Begin(const char* function);
void CountLive(int change);

// The module with the libraries' kernels, in the thread's context. Null after a failure.
void* LoadKernels();
void UnloadKernels(void* module);
// `threads` of a kernel, in groups of 64. False after a failure.
bool LaunchKernel(void* module, const char* name, std::int64_t threads, void** parameters, void* stream);

}  // namespace rewire::simulated_libraries
