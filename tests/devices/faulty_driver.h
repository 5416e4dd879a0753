// SPDX-License-Identifier: Apache-2.0
//
// The driver under test as something whose calls fail at will: the simulated CUDA driver, or the OpenCL
// library of tests/failing_opencl.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/simulated_cuda/control.h"

namespace rewire::test {

class FaultyDriver {
 public:
  // A code, and its name in the driver's words.
  struct Code {
    int code;
    const char* name;
  };

  // Null where the driver fails only when it wants.
  static std::unique_ptr<FaultyDriver> Find();
  virtual ~FaultyDriver() = default;
  FaultyDriver(const FaultyDriver&) = delete;
  FaultyDriver& operator=(const FaultyDriver&) = delete;

  // No call is to fail, and Calls begins at 0.
  virtual void Reset() = 0;
  // The k-th call from now on, from 1, fails.
  virtual void FailCall(std::uint64_t k, int code) = 0;
  virtual std::uint64_t Calls() const = 0;
  // How many objects of each kind are alive.
  virtual std::vector<std::uint64_t> Alive() const = 0;
  // Codes that any function may give: a failure without a reason, and one for want of memory.
  virtual std::vector<Code> codes() const = 0;
  // With what names of the driver's functions begin.
  virtual std::string prefix() const = 0;

 protected:
  FaultyDriver() = default;
};

// False where another driver is open.
bool FindSimulatedCuda(simulated_cuda::Control* control);

}  // namespace rewire::test
