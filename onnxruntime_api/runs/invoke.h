// SPDX-License-Identifier: Apache-2.0
//
// Calls of the VM in a run. A host may give an output the very tensor that it gives an input, as a present
// state that takes the place of the past one. That is a donation: the run writes it in the input's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/onnxruntime_api/sessions/model.h"
#include "rewire/vm/output.h"
#include "rewire/vm/value.h"

namespace rewire::onnxruntime_api {

struct Donation {
  std::uint32_t input = 0;  // of the function
  std::size_t binding = 0;
};

// The outputs that are bound to the whole memory of one input.
std::vector<Donation> DonationsOf(const std::vector<Value>& inputs,
                                  const std::vector<OutputBinding>& bindings);

// Runs the model's function. The VM refers to none of the memory afterwards.
Status Invoke(const Model& model, VirtualMachine& vm, const std::vector<Value>& inputs,
              const std::vector<OutputBinding>& bindings, const std::vector<Donation>& donations);

}  // namespace rewire::onnxruntime_api
