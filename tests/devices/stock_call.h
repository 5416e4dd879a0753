// SPDX-License-Identifier: Apache-2.0
//
// One call of a stock kernel, which a device must compute as the CPU does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/vm/value.h"

namespace rewire::test {

// A tensor of a call, as text assembly writes its type. Inputs get numbers between low and high.
struct Operand {
  std::string dtype;
  std::vector<std::int64_t> shape;
  double low = -4;
  double high = 4;
  bool special = false;              // some are NaN, infinite or -0
  bool on_host = false;              // for the device's kernel, too
  std::vector<double> numbers = {};  // in place of those between low and high

  std::string Type() const {
    std::string text = dtype + "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + "]";
  }
};

struct StockCall {
  std::string kernel;  // without "rewire."
  std::string attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

// A program whose main calls the kernel on the device, or on the CPU if `device` is empty.
std::string TextOf(const StockCall& call, const std::string& device);

// The inputs of the call, the same each time.
std::vector<Value> InputsOf(const StockCall& call);

// The numbers of each output of the call on the device, or on the CPU if `device` is empty.
std::vector<std::vector<double>> ResultsOf(const StockCall& call, const std::string& device);

// The message with which the device that REWIRE_TEST_DEVICE names refuses the call. Empty if it does not.
std::string DeviceErrorOf(const StockCall& call);

// Runs the call on the CPU and on the device that REWIRE_TEST_DEVICE names, and compares the results.
void CheckAlike(const StockCall& call);

}  // namespace rewire::test
