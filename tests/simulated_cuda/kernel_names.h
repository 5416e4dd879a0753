// SPDX-License-Identifier: Apache-2.0
// The simulated NVRTC finds names in CUDA C++ source without parsing it as a compiler does.
#pragma once

#include <string>
#include <vector>

namespace rewire::simulated_cuda {

struct KernelName {
  std::string qualified;  // as code behind the source can name it
  bool is_extern_c = false;
  bool operator==(const KernelName&) const = default;
};

// The kernels that are defined or declared, each once, but for templates.
std::vector<KernelName> FindKernels(const std::string& source);

// The source with `extern __shared__ T name[];` in the form that device_code.h takes.
std::string ReplaceDynamicShared(const std::string& source);

}  // namespace rewire::simulated_cuda
