// SPDX-License-Identifier: Apache-2.0
//
// Every call of the CUDA driver fails once, one after another. Each time there is an error with words,
// nothing is left behind, and the next call is right. Only the simulated driver fails at will.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/devices/twice_kernel.h"
#include "rewire/tests/simulated_cuda/control.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/pipeline.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

using simulated_cuda::Control;
using simulated_cuda::Counters;

constexpr int kUnknownError = 999;  // CUDA_ERROR_UNKNOWN
constexpr int kOutOfMemory = 2;     // CUDA_ERROR_OUT_OF_MEMORY

bool FindControl(Control* control) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr && control->Load([&](const char* name) { return dlsym(driver, name); });
}

// What must be as before.
std::vector<std::uint64_t> Alive(const Control& control) {
  Counters now{};
  control.GetCounters(&now);
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

// All calls of the driver since Reset.
std::uint64_t CallsOf(const Control& control) {
  std::uint64_t calls = 0;
#define REWIRE_COUNT(name, symbol, parameters, need) calls += control.CountCalls(#name);
  REWIRE_CUDA_FUNCTIONS(REWIRE_COUNT)
#undef REWIRE_COUNT
  return calls;
}

// What one scenario met.
struct Met {
  std::vector<std::string> errors;
  bool right = true;  // what came after an error, and everything that succeeded
};

// Loads device code, runs a program, again after a failure, records it, and sends it through a pipeline.
Met Scenario(const char* cache) {
  Met met;
  const auto note = [&met](const Status& status) {
    if (!status) met.errors.push_back(status.error().message());
    return bool{status};
  };
  try {
    const TestDevice device;
    const DeviceModule module(device, kTestKernels, cache);
    const Program program = TwiceProgram(device, module, 512);
    VirtualMachine vm(program);
    std::vector<float> x = Ramp(512);
    std::vector<float> y(512);
    vm.SetInput("x", TensorView(x.data(), {512}));
    vm.SetOutput(0, TensorView(y.data(), {512}));
    const auto run = [&] {
      std::memset(y.data(), 0, 2048);
      return note(vm.TryInvoke());
    };
    const auto is_right = [&] { return y[0] == 2.0f && y[511] == 1024.0f; };
    met.right = (run() || run()) && is_right();
    // Over pinned memory of the VM's: to memory that is not pinned, and to a result of the VM's own.
    const auto run_later = [&] {
      std::memset(y.data(), 0, 2048);
      return note(vm.TryInvokeAsync()) && note(vm.TryWait());
    };
    met.right = met.right && (run_later() || run_later()) && is_right();
    vm.ClearOutputs();
    met.right = met.right && (run() || run()) && FloatsOf(vm.Output())[511] == 1024.0f;
    vm.SetOutput(0, TensorView(y.data(), {512}));
    (void)note(vm.TryRecord());
    met.right = met.right && (run() || run()) && is_right();
    vm.SetAutomaticRecording(true);
    for (int i = 0; i < 4; ++i) met.right = met.right && (run() || run()) && is_right();
    Pipeline pipeline = *Pipeline::TryMake(program, 2);
    for (int i = 0; i < 3; ++i) {
      const Value input = Floats(x);
      const bool pushed = note(pipeline.TryPush({&input, 1})) || note(pipeline.TryPush({&input, 1}));
      Result<Value> result = pushed ? pipeline.TryPop() : Result<Value>(Value());
      if (!result) {
        met.errors.push_back(result.error().message());
      } else {
        met.right = met.right && pushed && FloatsOf(result->tensor())[511] == 1024.0f;
      }
    }
  } catch (const std::exception& error) {
    met.errors.emplace_back(error.what());
  }
  return met;
}

TEST_CASE("each call of the driver fails once: an error with words, nothing left, the next call right") {
  Control control;
  if (!FindControl(&control)) return;  // a real driver fails when it wants
  const TempFolder cache;              // compiles once
  (void)Scenario(cache.path().c_str());
  control.Reset();
  const Met whole = Scenario(cache.path().c_str());
  REQUIRE(whole.errors.empty());
  REQUIRE(whole.right);
  const std::uint64_t calls = CallsOf(control);
  for (const int code : {kUnknownError, kOutOfMemory}) {
    int told = 0;
    for (std::uint64_t k = 1; k <= calls; ++k) {
      INFO("call " << k << " fails with " << code);
      control.Reset();
      const std::vector<std::uint64_t> before = Alive(control);
      control.FailCall("*", k, code);
      const Met met = Scenario(cache.path().c_str());
      for (const std::string& error : met.errors) {
        INFO(error);
        CHECK(error.find(code == kUnknownError ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OUT_OF_MEMORY") !=
              std::string::npos);
        CHECK(error.find("cu") != std::string::npos);  // the driver's function
      }
      CHECK(met.right);
      CHECK(Alive(control) == before);
      told += met.errors.empty() ? 0 : 1;
    }
    CHECK(told > 20);
  }
  control.Reset();
}

TEST_CASE(
    "each piece of work fails once: the device is lost, every later call says so, and nothing is left") {
  Control control;
  if (!FindControl(&control)) return;
  constexpr int kLaunchFailed = 719;  // CUDA_ERROR_LAUNCH_FAILED
  const TempFolder cache;
  (void)Scenario(cache.path().c_str());
  for (const char kind : {'k', 'h', 'd'}) {
    for (std::uint64_t k = 1; k <= 5; ++k) {
      INFO("work of kind " << kind << ", number " << k);
      control.Reset();
      const std::vector<std::uint64_t> before = Alive(control);
      control.FailWork(kind, k, kLaunchFailed);
      const Met met = Scenario(cache.path().c_str());
      CHECK(met.errors.size() >= 2);  // the failure, and what came later
      for (const std::string& error : met.errors) {
        INFO(error);
        CHECK(error.find("CUDA_ERROR_LAUNCH_FAILED") != std::string::npos);
      }
      control.LoseDevice(0, 0);  // whole again
      CHECK(Alive(control) == before);
      const Met after = Scenario(cache.path().c_str());
      CHECK(after.errors.empty());
      CHECK(after.right);
    }
  }
  control.Reset();
}

}  // namespace
}  // namespace rewire::test
