// SPDX-License-Identifier: Apache-2.0
//
// A host's inputs as those of the VM.
#pragma once

#include <vector>

#include "rewire/onnxruntime_api/runs/run.h"

namespace rewire::onnxruntime_api {

// Fills in the function's inputs, in order. Statuses have ONNX Runtime's codes and texts: hosts show them.
OrtStatus* BindInputs(const Ports& ports, const std::vector<NamedInput>& inputs, std::vector<Value>* values);

// A failure that names the first input without a value, if there is one.
OrtStatus* CheckAllGiven(const Ports& ports, const std::vector<Value>& values);

// Whether a value that the host gives for an output has the output's type.
OrtStatus* CheckOutput(const Port& port, const ValueBody& body);

}  // namespace rewire::onnxruntime_api
