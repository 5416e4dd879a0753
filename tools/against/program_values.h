// SPDX-License-Identifier: Apache-2.0
//
// The values of the model that runs of a program make.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/tools/run/outputs.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

class ProgramValues {
 public:
  // `vm` has the function's inputs, and must outlive this.
  ProgramValues(VirtualMachine* vm, std::uint32_t function) : vm_(*vm), function_(function) {}

  // A value, and the instruction that made it.
  struct Place {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    std::uint32_t function = 0;
    std::uint32_t pc = 0;
  };

  // Runs once. Then these are there: values that the run made exactly once, and its outputs.
  Status Learn();
  const std::map<std::string, Place>& places() const { return places_; }
  const std::vector<Output>& outputs() const { return outputs_; }

  // Runs again and returns copies of these values.
  Result<std::map<std::string, HostTensor>> Values(const std::vector<std::string>& names);

 private:
  VirtualMachine& vm_;
  const std::uint32_t function_;
  std::map<std::string, Place> places_;
  std::vector<Output> outputs_;
};

}  // namespace rewire::tools
