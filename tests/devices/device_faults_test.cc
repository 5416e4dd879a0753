// SPDX-License-Identifier: Apache-2.0
//
// Every call of the driver fails once, one after another. Each time there is an error with words, nothing is
// left behind, and the next call is right. Only drivers of tests fail at will (faulty_driver.h).
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/tests/devices/faulty_driver.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/devices/twice_kernel.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/pipeline.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// The failures that one scenario met.
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
  const std::unique_ptr<FaultyDriver> driver = FaultyDriver::Find();
  if (driver == nullptr) return;  // a real one fails when it wants
  const TempFolder cache;         // compiles once
  (void)Scenario(cache.path().c_str());
  driver->Reset();
  const Met whole = Scenario(cache.path().c_str());
  REQUIRE(whole.errors.empty());
  REQUIRE(whole.right);
  const std::uint64_t calls = driver->Calls();
  for (const FaultyDriver::Code& code : driver->codes()) {
    int told = 0;
    for (std::uint64_t k = 1; k <= calls; ++k) {
      INFO("call " << k << " fails with " << code.name);
      driver->Reset();
      const std::vector<std::uint64_t> before = driver->Alive();
      driver->FailCall(k, code.code);
      const Met met = Scenario(cache.path().c_str());
      for (const std::string& error : met.errors) {
        INFO(error);
        CHECK(error.find(code.name) != std::string::npos);
        CHECK(error.find(driver->prefix()) != std::string::npos);  // the driver's function
      }
      CHECK(met.right);
      CHECK(driver->Alive() == before);
      told += met.errors.empty() ? 0 : 1;
    }
    CHECK(told > 20);
  }
  driver->Reset();
}

TEST_CASE(
    "each call that compiles device code fails once: nothing left, and the code is loaded the next time") {
  const std::unique_ptr<FaultyDriver> driver = FaultyDriver::Find();
  if (driver == nullptr) return;
  const auto load = [](const TempFolder& cache) {
    try {
      const TestDevice device;
      const DeviceModule module(device, kTestKernels, cache.path().c_str());
      void* kernel = nullptr;
      const int code = device.api.find_kernel(device.api.context, device.id, module.module, "scale", &kernel);
      return code == REWIRE_DEVICE_OK ? std::string() : std::string(device.api.error(device.api.context));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  driver->Reset();
  REQUIRE(load(TempFolder()) == "");
  const std::uint64_t calls = driver->Calls();
  for (std::uint64_t k = 1; k <= calls; ++k) {
    INFO("call " << k);
    const TempFolder cache;
    driver->Reset();
    const std::vector<std::uint64_t> before = driver->Alive();
    const FaultyDriver::Code code = driver->codes()[0];
    driver->FailCall(k, code.code);
    const std::string error = load(cache);
    INFO(error);
    CHECK((error.empty() || error.find(code.name) != std::string::npos));
    CHECK(driver->Alive() == before);
    driver->Reset();
    CHECK(load(cache) == "");
    CHECK(driver->Alive() == before);
  }
}

TEST_CASE(
    "each piece of work fails once: the device is lost, every later call says so, and nothing is left") {
  simulated_cuda::Control control;
  if (!FindSimulatedCuda(&control)) return;
  const std::unique_ptr<FaultyDriver> driver = FaultyDriver::Find();
  constexpr int kLaunchFailed = 719;  // CUDA_ERROR_LAUNCH_FAILED
  const TempFolder cache;
  (void)Scenario(cache.path().c_str());
  for (const char kind : {'k', 'h', 'd'}) {
    for (std::uint64_t k = 1; k <= 5; ++k) {
      INFO("work of kind " << kind << ", number " << k);
      control.Reset();
      const std::vector<std::uint64_t> before = driver->Alive();
      control.FailWork(kind, k, kLaunchFailed);
      const Met met = Scenario(cache.path().c_str());
      CHECK(met.errors.size() >= 2);  // the failure, and what came later
      for (const std::string& error : met.errors) {
        INFO(error);
        CHECK(error.find("CUDA_ERROR_LAUNCH_FAILED") != std::string::npos);
      }
      control.LoseDevice(0, 0);  // whole again
      CHECK(driver->Alive() == before);
      const Met after = Scenario(cache.path().c_str());
      CHECK(after.errors.empty());
      CHECK(after.right);
    }
  }
  control.Reset();
}

}  // namespace
}  // namespace rewire::test
