// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/devices/faulty_driver.h"

#include <dlfcn.h>

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/tests/failing_opencl/control.h"

namespace rewire::test {
namespace {

template <typename Control>
bool FindControl(const char* library, Control* control) {
  void* const driver = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr && control->Load([&](const char* name) { return dlsym(driver, name); });
}

class SimulatedCuda : public FaultyDriver {
 public:
  explicit SimulatedCuda(const simulated_cuda::Control& control) : control_(control) {}

  void Reset() override { control_.Reset(); }
  void FailCall(std::uint64_t k, int code) override { control_.FailCall("*", k, code); }
  std::uint64_t Calls() const override {
    std::uint64_t calls = 0;
#define REWIRE_COUNT(name, symbol, parameters, need) calls += control_.CountCalls(#name);
    REWIRE_CUDA_FUNCTIONS(REWIRE_COUNT)
#undef REWIRE_COUNT
    return calls;
  }
  std::vector<std::uint64_t> Alive() const override {
    simulated_cuda::Counters now{};
    control_.GetCounters(&now);
    return {now.device_allocations,
            now.device_bytes,
            now.pinned_allocations,
            now.streams,
            now.events,
            now.modules,
            now.graphs,
            now.graph_execs,
            now.violations};
  }
  std::vector<Code> codes() const override {
    return {{999, "CUDA_ERROR_UNKNOWN"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}};
  }
  std::string prefix() const override { return "cu"; }

 private:
  simulated_cuda::Control control_;
};

class FailingOpenCl : public FaultyDriver {
 public:
  explicit FailingOpenCl(const failing_opencl::Control& control) : control_(control) {}

  void Reset() override { control_.Reset(); }
  void FailCall(std::uint64_t k, int code) override { control_.FailCall(k, code); }
  std::uint64_t Calls() const override { return control_.CountCalls(); }
  std::vector<std::uint64_t> Alive() const override {
    failing_opencl::Alive now{};
    control_.GetAlive(&now);
    return {now.contexts, now.queues,  now.memory_objects, now.events,
            now.programs, now.kernels, now.command_buffers};
  }
  std::vector<Code> codes() const override {
    return {{-5, "CL_OUT_OF_RESOURCES"}, {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"}};
  }
  std::string prefix() const override { return "cl"; }

 private:
  failing_opencl::Control control_;
};

}  // namespace

std::unique_ptr<FaultyDriver> FaultyDriver::Find() {
  simulated_cuda::Control cuda;
  if (FindSimulatedCuda(&cuda)) return std::make_unique<SimulatedCuda>(cuda);
  failing_opencl::Control opencl;
  if (FindControl("libOpenCL.so.1", &opencl)) return std::make_unique<FailingOpenCl>(opencl);
  return nullptr;
}

bool FindSimulatedCuda(simulated_cuda::Control* control) { return FindControl("libcuda.so.1", control); }

}  // namespace rewire::test
