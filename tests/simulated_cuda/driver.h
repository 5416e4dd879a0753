// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver as its own tests use it: opened as a runtime opens a driver.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/devices/cuda/nvrtc_abi.h"
#include "rewire/tests/simulated_cuda/control.h"

namespace rewire::simulated_cuda::test {

using namespace rewire::cuda;  // NOLINT(google-build-using-namespace)

const CudaDriver& Driver();
const Control& Simulation();
// NVRTC of version 12 or 13.
Nvrtc OpenNvrtc(int major);

// The bytes of an image that the build has made.
std::string ImageFile(const std::string& name);

// A context of device 0 on this thread, the simulation as it is at the start. At its end nothing may be left.
class Session {
 public:
  explicit Session(int device = 0);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  CUcontext context = nullptr;
  // The module of test_kernels.cu, opened when it is first asked for.
  CUfunction Kernel(const std::string& name);
  // Misuse that the simulation has seen, then forgotten.
  std::vector<std::string> TakeViolations();
  Counters Count() const;

  CUstream NewStream();
  CUdeviceptr Upload(const void* bytes, std::size_t size, CUstream stream = nullptr);
  template <typename T>
  CUdeviceptr Upload(const std::vector<T>& values, CUstream stream = nullptr) {
    return Upload(values.data(), values.size() * sizeof(T), stream);
  }
  template <typename T>
  std::vector<T> Download(CUdeviceptr from, std::size_t count, CUstream stream = nullptr) {
    std::vector<T> values(count);
    Download(values.data(), from, count * sizeof(T), stream);
    return values;
  }
  void Download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  CUresult Launch(const std::string& kernel, unsigned grid, unsigned block,
                  std::initializer_list<void*> arguments, CUstream stream = nullptr, unsigned shared = 0);

 private:
  int device_;
  CUmodule module_ = nullptr;
  std::map<std::string, CUfunction> functions_;
  std::vector<CUstream> streams_;
  std::vector<CUdeviceptr> memory_;
  std::size_t violations_taken_ = 0;
};

}  // namespace rewire::simulated_cuda::test
